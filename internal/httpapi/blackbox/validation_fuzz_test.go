package blackbox_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/party"
	"example.com/shop/internal/stock"
)

// recorder accepts every order and keeps what reached it.
type recorder struct {
	fake
	calls    int
	customer string
	items    []order.Item
	patience order.Preference
	once     *idempotency.Request
}

func (r *recorder) Place(_ context.Context, p order.Purchase) (order.Order, error) {
	r.calls, r.customer, r.items = r.calls+1, p.Customer, p.Items
	r.patience, r.once = p.Prefer, p.Key
	o := someOrderOf(p.Customer)
	o.Items = p.Items
	return o, nil
}

// someOrderOf returns an order that was just placed.
func someOrderOf(customer string) order.Order {
	now := time.UnixMicro(1_763_636_400_000_000)
	return order.Order{
		ID: someOrder, CustomerID: customer, Status: order.Pending, Items: []order.Item{{SKU: "s1", Quantity: 2}},
		CreatedAt: now, ExpiresAt: now.Add(15 * time.Minute),
	}
}

// FuzzOrder sends any bytes as the body of an order. A refused body does not reach the domain. An accepted body is
// within all limits. A plain JSON reader reads the same from it, apart from white space, the order of fields and the
// spelling of characters.
func FuzzOrder(f *testing.F) {
	for _, c := range badRequests("/api/v1/orders/" + someOrder) {
		if c.path == orders {
			f.Add([]byte(c.body))
		}
	}
	f.Add([]byte(basket))
	f.Add([]byte(`{"items":[{"quantity":1000,"sku":"\u00731"}],"customer_id":"a.b_c:d@e-f"}`))
	var domain recorder
	s := newHandler(f, httpapi.Config{Orders: &domain})
	f.Fuzz(func(t *testing.T, body []byte) {
		domain = recorder{}
		r := httptest.NewRequest(http.MethodPost, orders, strings.NewReader(string(body)))
		r.Header.Set("Content-Type", jsonType)
		status, _, answer := s.send(t, r)
		if accepted := status == http.StatusCreated; accepted != (domain.calls == 1) || domain.calls > 1 {
			t.Fatalf("status %d after %d calls", status, domain.calls)
		}
		if status != http.StatusCreated {
			if status < 400 || status > 499 {
				t.Errorf("status %d: %v", status, answer)
			}
			return
		}
		checkLimits(t, &domain, body)
		var sent, got any
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatalf("accepted what is not JSON: %v", err)
		}
		again, err := json.Marshal(map[string]any{"customer_id": answer["customer_id"], "items": answer["items"]})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sent, got); diff != "" {
			t.Errorf("sent and accepted differ:\n%s", diff)
		}
	})
}

func checkLimits(t *testing.T, got *recorder, body []byte) {
	t.Helper()
	if len(body) > 64<<10 || !party.ValidID(got.customer) || len(got.items) < 1 || len(got.items) > order.MaxItems {
		t.Errorf("accepted %d bytes, customer %q, %d items", len(body), got.customer, len(got.items))
	}
	for _, it := range got.items {
		if !stock.ValidSKU(it.SKU) || it.Quantity < 1 || it.Quantity > stock.MaxQuantity {
			t.Errorf("accepted %+v", it)
		}
	}
}

// BenchmarkOrder is what the way through HTTP costs, without a domain behind it.
func BenchmarkOrder(b *testing.B) {
	s := newHandler(b, httpapi.Config{Orders: new(recorder)})
	b.ReportAllocs()
	for b.Loop() {
		r := post(basket, "Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
		if status, _, body := s.do(r); status != http.StatusCreated {
			b.Fatalf("%d %s", status, body)
		}
	}
}
