package blackbox_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// A shop is a handler, and the specification that its answers are held against.
type shop struct {
	http.Handler
	spec *openapi3.T
}

// newShop returns a shop without Redis on a database of its own.
func newShop(tb testing.TB) *shop {
	tb.Helper()
	return newShopWith(tb, order.Config{})
}

func newShopWith(tb testing.TB, c order.Config) *shop {
	tb.Helper()
	store := newStore(tb)
	strategies := stock.NewStrategies(stock.Lockers{})
	return newHandler(tb, httpapi.Config{
		Orders:     order.NewService(store, strategies, c),
		Stock:      stock.NewService(store, strategies, nil),
		Strategies: strategies,
		Ready:      store.Ping,
	})
}

// newHandler returns a shop with the given parts.
func newHandler(tb testing.TB, c httpapi.Config) *shop {
	tb.Helper()
	c.Instance = "i1"
	h, err := httpapi.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return &shop{Handler: h, spec: specified(tb, onPublicListener)}
}

// specification is that of the file, read once. Clients accept unknown fields in responses, and tests do not: here
// every schema is closed.
var specification = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	if err == nil {
		for _, schema := range doc.Components.Schemas {
			closeSchema(schema.Value)
		}
	}
	return doc, err
})

// closeSchema refuses fields that schema and its parts do not have.
func closeSchema(schema *openapi3.Schema) {
	if len(schema.Properties) > 0 {
		schema.AdditionalProperties = openapi3.BoolSchema{Has: new(bool)}
	}
	for _, p := range schema.Properties {
		closeSchema(p.Value)
	}
	if schema.Items != nil {
		closeSchema(schema.Items.Value)
	}
}

// everywhere, onPublicListener and onAdminListener choose paths for specified.
func everywhere(*openapi3.PathItem) bool            { return true }
func onPublicListener(item *openapi3.PathItem) bool { return len(item.Servers) == 0 }
func onAdminListener(item *openapi3.PathItem) bool  { return len(item.Servers) > 0 }

// specified returns the specification with the chosen paths.
func specified(tb testing.TB, chosen func(*openapi3.PathItem) bool) *openapi3.T {
	tb.Helper()
	whole, err := specification()
	if err != nil {
		tb.Fatal(err)
	}
	some := *whole
	some.Paths = openapi3.NewPaths()
	for path, item := range whole.Paths.Map() {
		for _, op := range item.Operations() {
			if len(op.Tags) != 1 {
				tb.Errorf("%s has %d tags", path, len(op.Tags))
			} else if chosen(item) {
				some.Paths.Set(path, item)
			}
		}
	}
	return &some
}

func (s *shop) do(r *http.Request) (status int, header http.Header, body []byte) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Result().Header, w.Body.Bytes()
}

// call sends body as JSON, or nothing when it is empty, and fails the test
// unless the specification allows the answer.
func (s *shop) call(tb testing.TB, method, path, body string) (status int, header http.Header, answer map[string]any) {
	tb.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return s.send(tb, r)
}

func (s *shop) send(tb testing.TB, r *http.Request) (status int, header http.Header, answer map[string]any) {
	tb.Helper()
	status, header, body := s.do(r)
	s.conforms(tb, r, status, header, body)
	if err := json.Unmarshal(body, &answer); err != nil {
		tb.Fatalf("%s %s: answer %q: %v", r.Method, r.URL, body, err)
	}
	return status, header, answer
}

// conforms holds an answer against the specification, or against the schema of
// a problem if the request has no place in it.
func (s *shop) conforms(tb testing.TB, r *http.Request, status int, header http.Header, body []byte) {
	tb.Helper()
	for name, want := range map[string]string{"X-Instance-Id": "i1", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if name == "Cache-Control" && header.Get("ETag") != "" {
			want = "private, no-cache"
		}
		if got := header.Get(name); got != want {
			tb.Errorf("%s %s: %s is %q, want %q", r.Method, r.URL, name, got, want)
		}
	}
	if status >= 400 {
		s.isProblem(tb, status, header, body)
	}
	route := s.route(r)
	if route == nil {
		return
	}
	declared := slices.Clone(undeclared)
	if answer := route.Operation.Responses.Status(status); answer != nil {
		declared = slices.AppendSeq(declared, maps.Keys(answer.Value.Headers))
	}
	for name := range header {
		if !slices.ContainsFunc(declared, func(d string) bool { return strings.EqualFold(d, name) }) {
			tb.Errorf("%s %s: an answer %d has %s, which the specification does not declare", r.Method, r.URL, status, name)
		}
	}
	err := openapi3filter.ValidateResponse(tb.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route},
		Status:                 status, Header: header, Body: io.NopCloser(strings.NewReader(string(body))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		tb.Errorf("%s %s: answer %d %s: %v", r.Method, r.URL, status, body, err)
	}
}

// undeclared are the headers that the specification need not declare: they mean what they mean everywhere.
var undeclared = []string{
	"Allow", "Cache-Control", "Connection", "Content-Length", "Content-Security-Policy", "Content-Type", "Vary",
	"X-Accel-Buffering", "X-Content-Type-Options",
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// route returns the operation that the specification has for r, or nil. HEAD is GET.
func (s *shop) route(r *http.Request) *routers.Route {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for path, item := range s.spec.Paths.Map() {
		form := regexp.MustCompile("^" + parameter.ReplaceAllString(path, "[^/]+") + "$")
		if op := item.GetOperation(method); op != nil && form.MatchString(r.URL.Path) {
			return &routers.Route{Spec: s.spec, Path: path, PathItem: item, Method: method, Operation: op}
		}
	}
	return nil
}

// methodNotAllowed is the only type that no operation can have.
const methodNotAllowed = "/docs/problems/method-not-allowed"

// problems returns the schemas of problems by their type.
func (s *shop) problems() map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for name, schema := range s.spec.Components.Schemas {
		if member := schema.Value.Properties["type"]; strings.HasSuffix(name, "Problem") && member != nil {
			kind, _ := member.Value.Enum[0].(string)
			all[kind] = schema.Value
		}
	}
	return all
}

// isProblem checks what is true of every problem.
func (s *shop) isProblem(tb testing.TB, status int, header http.Header, body []byte) {
	tb.Helper()
	if got := header.Get("Content-Type"); got != "application/problem+json" {
		tb.Errorf("Content-Type is %q", got)
	}
	var problem map[string]any
	if err := json.Unmarshal(body, &problem); err != nil {
		tb.Fatalf("problem %q: %v", body, err)
	}
	kind, _ := problem["type"].(string)
	if schema, ok := s.problems()[kind]; !ok && kind != methodNotAllowed {
		tb.Errorf("the specification has no problem %s", kind)
	} else if ok {
		if err := schema.VisitJSON(problem); err != nil {
			tb.Errorf("problem %s: %v", body, err)
		}
	}
	if problem["status"] != float64(status) {
		tb.Errorf("problem says status %v in an answer %d", problem["status"], status)
	}
	inFlight := problem["type"] == "/docs/problems/request-in-flight"
	if wait := header.Get("Retry-After"); (wait != "") != (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || inFlight) {
		tb.Errorf("Retry-After is %q in an answer %d", wait, status)
	}
	if len(body) > 4096 {
		tb.Errorf("problem has %d bytes", len(body))
	}
	// The names of the strategies, one of which is "sql", are for the client.
	said := strings.Replace(string(body), strings.Join(stock.NewStrategies(stock.Lockers{}).Names(), ", "), "", 1)
	for _, word := range []string{"Go ", "json:", "strconv", "openapi3", "goroutine", "sql", "struct", "order:", "stock:", "httpapi", "regular expression", "EOF", ".go:", "SELECT ", "gorm", "UNIQUE", "constraint", "idempotency:", "identity:", "permits:", "10.0.0."} {
		if strings.Contains(said, word) {
			tb.Errorf("problem contains %q: %s", word, body)
		}
	}
}

// books returns everything that a request could have changed.
func (s *shop) books(tb testing.TB) string {
	tb.Helper()
	return s.booksAs(tb, "")
}

// booksAs returns the audit with the key of an admin.
func (s *shop) booksAs(tb testing.TB, key string) string {
	tb.Helper()
	var all strings.Builder
	for _, path := range []string{"/api/v1/audit", "/api/v1/skus", "/api/v1/orders?limit=100"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+key)
		status, _, body := s.do(r)
		if status != http.StatusOK {
			tb.Fatalf("%s: %d %s", path, status, body)
		}
		all.Write(lastAudit.ReplaceAll(body, nil))
	}
	return all.String()
}

// lastAudit is what an audit says about the one before.
var lastAudit = regexp.MustCompile(`,"right_to":\d+(,"right_at":"[^"]*")?,"checked":\d+`)

// must fails the test unless the call is answered with want.
func (s *shop) must(tb testing.TB, want int, method, path, body string) map[string]any {
	tb.Helper()
	status, _, answer := s.call(tb, method, path, body)
	if status != want {
		tb.Fatalf("%s %s %s: %d %v, want %d", method, path, body, status, answer, want)
	}
	return answer
}

func (s *shop) place(tb testing.TB) (id string) {
	tb.Helper()
	id, _ = s.must(tb, http.StatusCreated, http.MethodPost, "/api/v1/orders", basket)["id"].(string)
	return id
}
