package blackbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/party"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// TestSpecification holds the specification against its own standard, examples
// included, and asks it to describe itself.
func TestSpecification(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	status, header, body := s.do(httptest.NewRequest(http.MethodGet, "/api/v1/openapi.yaml", nil))
	file, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if status != http.StatusOK || header.Get("Content-Type") != "application/yaml" || string(body) != string(file) {
		t.Errorf("served: %d %s, %d bytes of %d", status, header.Get("Content-Type"), len(body), len(file))
	}
	if err := s.spec.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	for name, schema := range s.spec.Components.Schemas {
		v := schema.Value
		if v.Description == "" {
			t.Errorf("schema %s has no description", name)
		}
		for member, p := range v.Properties {
			if p.Value.Description == "" {
				t.Errorf("%s.%s has no description", name, member)
			}
		}
	}
}

// TestRoutesAreTheSpecification compares the router with the specification, in
// both directions.
func TestRoutesAreTheSpecification(t *testing.T) {
	t.Parallel()
	var described []string
	for path, item := range specified(t, everywhere).Paths.Map() {
		for method, op := range item.Operations() {
			if op.Tags[0] != "health" { // those are written by hand
				described = append(described, method+" "+path)
			}
			if op.Summary == "" || op.Description == "" {
				t.Errorf("%s %s is not described", method, path)
			}
			if strings.Contains(path, "{") && op.Responses.Status(http.StatusNotFound) == nil {
				t.Errorf("%s %s is never 404, also without what names the resource", method, path)
			}
		}
	}
	var generated []string
	source, err := os.ReadFile("../openapi.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`router\.([A-Z]+)\(options\.BaseURL\+"(.*?)"`).FindAllSubmatch(source, -1) {
		generated = append(generated, string(m[1])+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(string(m[2]), "{$1}"))
	}
	slices.Sort(described)
	slices.Sort(generated)
	if diff := cmp.Diff(described, generated); diff != "" {
		t.Errorf("specification and generated routes differ; run go generate:\n%s", diff)
	}

	checkRoutes(t, newHandler(t, httpapi.Config{Orders: failing(stock.ErrBusy), Stock: failing(stock.ErrBusy)}))
	checkRoutes(t, newAdmin(t, brokenTimers{err: timeout.ErrUnavailable}))
}

// checkRoutes asks s for everything that its specification has, by every method.
func checkRoutes(t *testing.T, s *shop) {
	t.Helper()
	methods := []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}
	for path := range s.spec.Paths.Map() {
		for _, method := range methods {
			r := httptest.NewRequest(method, strings.NewReplacer("{sku}", "s1", "{id}", someOrder, "{kind}", "k").Replace(path), nil)
			status, header, _ := s.do(r)
			if want := s.route(r) != nil; (status != http.StatusMethodNotAllowed) != want || status == http.StatusNotFound {
				t.Errorf("%s %s: %d", method, path, status)
			}
			if status == http.StatusMethodNotAllowed {
				var allowed []string
				for _, r.Method = range methods {
					if s.route(r) != nil {
						allowed = append(allowed, r.Method)
					}
				}
				got := strings.Split(header.Get("Allow"), ", ")
				slices.Sort(allowed)
				slices.Sort(got)
				if diff := cmp.Diff(allowed, got); diff != "" {
					t.Errorf("%s %s: Allow: %s", method, path, diff)
				}
			}
		}
	}
}

// TestPatternsAgreeWithTheDomain lets neither side accept a name that the other
// one refuses.
func TestPatternsAgreeWithTheDomain(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{})
	for schema, valid := range map[string]func(string) bool{
		"SKUName": stock.ValidSKU, "PartyID": party.ValidID, "OrderID": order.ValidID,
	} {
		for _, v := range []string{
			"a", "A9", "0", "a.b", "a_b", "a-b", "a:b", "a@b", ".a", "-a", "_a", ":a", "@a", "", " ", "a ", "a\n", "a\x00", "ä", "a/b", "a{b}", "a%b",
			strings.Repeat("a", 64), strings.Repeat("a", 65), order.NewID(), strings.ToUpper(order.NewID()), "{" + order.NewID() + "}",
			"urn:uuid:" + order.NewID(), strings.ReplaceAll(order.NewID(), "-", ""), order.NewID() + "\n", "00000000-0000-0000-0000-000000000000",
		} {
			if got := s.spec.Components.Schemas[schema].Value.VisitJSON(v) == nil; got != valid(v) {
				t.Errorf("%s %q: the specification says %v, the domain %v", schema, v, got, valid(v))
			}
		}
	}
	if got := *s.spec.Components.Schemas["NewOrder"].Value.Properties["items"].Value.MaxItems; got != order.MaxItems {
		t.Errorf("at most %d items, the domain has %d", got, order.MaxItems)
	}
	if got := *s.spec.Components.Schemas["Quantity"].Value.Max; got != stock.MaxQuantity {
		t.Errorf("at most %v units, the domain has %v", got, stock.MaxQuantity)
	}
	if got := *s.spec.Components.Schemas["NewSKU"].Value.Properties["on_hand"].Value.Max; got != stock.MaxOnHand {
		t.Errorf("at most %v on hand, the domain has %v", got, stock.MaxOnHand)
	}
	text := s.spec.Components.Schemas["NewSKU"].Value.Properties["strategy"].Value.Description
	for _, name := range stock.NewStrategies(stock.Lockers{}).Names() {
		if !strings.Contains(text, name) {
			t.Errorf("the specification does not name the strategy %s", name)
		}
	}
}

// TestFencesAreNumbers up to the largest integer that JavaScript reads exactly.
func TestFencesAreNumbers(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Stock: shelf{level: stock.Level{
		SKU: "s1", Strategy: "redis", OnHand: 1, Version: 1, Fence: dlock.Fence{Token: 1<<53 - 1, Owner: "o1"},
	}}})
	r := httptest.NewRequest(http.MethodGet, "/api/v1/skus/s1", nil)
	status, header, body := s.do(r)
	s.conforms(t, r, status, header, body)
	want := `{"sku":"s1","strategy":"redis","on_hand":1,"reserved":0,"available":1,"version":1,"fence":9007199254740991}` + "\n"
	if string(body) != want {
		t.Errorf("got %s want %s", body, want)
	}
}

// TestAuditShowsViolatedInvariants are reported, and are no error of the request.
func TestAuditShowsViolatedInvariants(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Stock: shelf{audits: []stock.Audit{
		{SKU: "s1", Strategy: "naive", Stocked: 5, OnHand: 5, LedgerOnHand: 5, Reserved: 4, LedgerReserved: 6, Open: 6, Checked: 3},
		{SKU: "s2", Strategy: "redis", Stocked: 5, OnHand: 5, LedgerOnHand: 5, Overdue: 3, RightTo: 8, RightAt: time.Unix(0, 0).UTC()},
	}}})
	r := httptest.NewRequest(http.MethodGet, "/api/v1/audit", nil)
	status, header, body := s.do(r)
	s.conforms(t, r, status, header, body)
	want := `{"ok":false,"skus":[` +
		`{"sku":"s1","strategy":"naive","stocked":5,"on_hand":5,"reserved":4,"sold":0,"accepted":6,` +
		`"oversold":1,"undersold":0,"lost_updates":2,"overdue":0,"ledger_ok":false,"ok":false,"right_to":0,"checked":3},` +
		`{"sku":"s2","strategy":"redis","stocked":5,"on_hand":5,"reserved":0,"sold":0,"accepted":0,` +
		`"oversold":0,"undersold":0,"lost_updates":0,"overdue":3,"ledger_ok":true,"ok":false,"right_to":8,"right_at":"1970-01-01T00:00:00Z","checked":0}]}` + "\n"
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// shelf is a stock that can be read.
type shelf struct {
	httpapi.Stock
	level  stock.Level
	audits []stock.Audit
}

func (s shelf) AuditRecent(context.Context, string) ([]stock.Audit, error) { return s.audits, nil }

func (s shelf) Level(context.Context, string) (stock.Level, error) { return s.level, nil }

// TestEveryRefusalNamesItsTypes: a refusal has a schema per type, chosen by the type, with the status of the
// response. Some operation has each type. Every test that sends a request checks the response against the schema.
func TestEveryRefusalNamesItsTypes(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{})
	unused := s.problems()
	for path, item := range specified(t, everywhere).Paths.Map() {
		for method, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				if status < "400" {
					continue
				}
				where := method + " " + path + " " + status
				schema := response.Value.Content["application/problem+json"].Schema
				choices := openapi3.SchemaRefs{schema}
				if schema.Value.OneOf != nil {
					choices = schema.Value.OneOf
					if d := schema.Value.Discriminator; d == nil || d.PropertyName != "type" || len(d.Mapping) != len(choices) {
						t.Errorf("%s: its %d schemas are not chosen by the type", where, len(choices))
						continue
					}
				}
				for _, choice := range choices {
					kind, _ := choice.Value.Properties["type"].Value.Enum[0].(string)
					if got := fmt.Sprint(choice.Value.Properties["status"].Value.Enum[0]); got != status {
						t.Errorf("%s: %s has the status %s", where, kind, got)
					}
					if d := schema.Value.Discriminator; d != nil && d.Mapping[kind].Ref != choice.Ref {
						t.Errorf("%s: %s chooses %v, not %s", where, kind, d.Mapping[kind], choice.Ref)
					}
					delete(unused, kind)
				}
			}
		}
	}
	for kind := range unused {
		t.Errorf("no operation has %s", kind)
	}
}

// TestExamplesAreNotSentUnasked: a page that tries out operations sends the example of a parameter as its value, so
// an optional parameter has none. Generators consider a field with a default always present.
func TestExamplesAreNotSentUnasked(t *testing.T) {
	t.Parallel()
	for path, item := range specified(t, everywhere).Paths.Map() {
		for method, op := range item.Operations() {
			for _, p := range slices.Concat(op.Parameters, item.Parameters) {
				if v := p.Value; !v.Required && (v.Example != nil || v.Schema.Value.Example != nil) {
					t.Errorf("%s %s: the optional %s has an example", method, path, v.Name)
				}
			}
			if op.RequestBody == nil {
				continue
			}
			for name, member := range op.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
				if member.Value.Default != nil {
					t.Errorf("%s %s: %s has a default", method, path, name)
				}
			}
		}
	}
}
