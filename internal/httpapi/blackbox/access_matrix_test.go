package blackbox_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealthNeedsNoKey, and ignores a query and a body, which some probes send.
func TestHealthNeedsNoKey(t *testing.T) {
	t.Parallel()
	public, admin := locked(t)
	n := 0
	for _, s := range []*shop{public, admin} {
		for path, item := range s.spec.Paths.Map() {
			if item.Get == nil || item.Get.Tags[0] != "health" {
				continue
			}
			n++
			for _, key := range []string{"", "made up", "owner", "admin"} {
				r := httptest.NewRequest(http.MethodGet, path+"?probe=1", strings.NewReader("x"))
				r.Header.Set("Authorization", "Bearer "+key)
				status, header, body := s.do(r)
				s.conforms(t, r, status, header, body)
				if status != http.StatusOK {
					t.Errorf("%s with the key %q: %d %s", path, key, status, body)
				}
			}
		}
	}
	if n != 3 {
		t.Errorf("%d operations have the tag health", n)
	}
}

// doors has the responses of each operation to five kinds of keys: none, invalid, another customer's, the owner's and
// an admin's. A new operation needs a row.
var doors = map[string]struct {
	body string
	want [5]int
}{
	"listSKUs":         {"", [5]int{401, 401, 200, 200, 200}},
	"getSKU":           {"", [5]int{401, 401, 200, 200, 200}},
	"createSKU":        {`{"on_hand":9,"strategy":"conditional"}`, [5]int{401, 401, 403, 403, 200}},
	"restockSKU":       {`{"quantity":1}`, [5]int{401, 401, 403, 403, 200}},
	"listOrders":       {"", [5]int{401, 401, 200, 200, 200}},
	"placeOrder":       {`{"customer_id":"c1","items":[{"sku":"s1","quantity":1}]}`, [5]int{401, 401, 403, 201, 201}},
	"getOrder":         {"", [5]int{401, 401, 404, 200, 200}},
	"listMovements":    {"", [5]int{401, 401, 404, 200, 200}},
	"traceOrder":       {"", [5]int{401, 401, 403, 403, 200}},
	"payOrder":         {`{"payment_id":"p1"}`, [5]int{401, 401, 404, 200, 200}},
	"cancelOrder":      {"", [5]int{401, 401, 404, 200, 200}},
	"extendOrder":      {`{"by_seconds":1}`, [5]int{401, 401, 404, 200, 200}},
	"subscribeEvents":  {"", [5]int{401, 401, 503, 503, 503}}, // which lets nobody listen
	"runAudit":         {"", [5]int{401, 401, 403, 403, 200}},
	"showCluster":      {"", [5]int{401, 401, 403, 403, 200}},
	"setConfig":        {`{"value":"8"}`, [5]int{401, 401, 403, 403, 404}}, // which the test does not have
	"listStrategies":   {"", [5]int{401, 401, 403, 403, 200}},
	"getSpecification": {"", [5]int{200, 200, 200, 200, 200}},
	"listTimers":       {"", [5]int{401, 401, 403, 403, 200}},
	"getTimer":         {"", [5]int{401, 401, 403, 403, 200}},
	"fireTimer":        {"", [5]int{401, 401, 403, 403, 200}},
	"redriveTimers":    {"", [5]int{401, 401, 403, 403, 200}},
	"pauseTimers":      {"", [5]int{401, 401, 403, 403, 200}},
	"resumeTimers":     {"", [5]int{401, 401, 403, 403, 200}},
}

// TestEveryOperationChecksItsAccess asks for every operation of the specification with every kind of key. A refused
// request changes nothing.
func TestEveryOperationChecksItsAccess(t *testing.T) {
	t.Parallel()
	public, admin := locked(t)
	public.as(t, "admin", http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	fresh := func() string { // an order of c1
		status, o := public.as(t, "owner", http.MethodPost, orders, doors["placeOrder"].body)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, o)
		}
		return o["id"].(string)
	}
	rows := maps.Clone(doors)
	for _, s := range []*shop{public, admin} {
		for path, item := range s.spec.Paths.Map() {
			for method, op := range item.Operations() {
				if op.Tags[0] == "health" {
					continue // see TestHealthNeedsNoKey
				}
				row, ok := rows[op.OperationID]
				if !ok {
					t.Errorf("%s %s has no row", method, path)
				}
				delete(rows, op.OperationID)
				for i, key := range []string{"", "made up", "other", "owner", "admin"} {
					id := "a"
					if s == public && strings.Contains(path, "{id}") {
						id = fresh()
						public.as(t, "admin", http.MethodPost, "/api/v1/skus/s1/restock", `{"quantity":9}`)
					}
					before := ""
					if row.want[i] >= 400 {
						before = public.booksAs(t, "admin")
					}
					at := strings.NewReplacer("{sku}", "s1", "{name}", "permits", "{kind}", "k", "{id}", id).Replace(path)
					if status, answer := s.as(t, key, method, at, row.body); status != row.want[i] {
						t.Errorf("%s %s with the key %q: %d, want %d: %v", method, path, key, status, row.want[i], answer)
					}
					if row.want[i] >= 400 && public.booksAs(t, "admin") != before {
						t.Errorf("%s %s with the key %q changed the books", method, path, key)
					}
				}
			}
		}
	}
	for op := range rows {
		t.Errorf("there is no operation %s", op)
	}
}
