package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/httpapi/ratelimit"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// rates lets every customer place some orders.
type rates struct {
	left  map[string]int
	asked int
}

func (r *rates) Allow(_ context.Context, customer string) (ratelimit.Verdict, error) {
	r.asked++
	r.left[customer]--
	v := ratelimit.Verdict{Limit: 2, Remaining: max(0, r.left[customer]), ResetAfter: 1500 * time.Millisecond}
	if v.Allowed = r.left[customer] >= 0; !v.Allowed {
		v.RetryAfter = 2100 * time.Millisecond
	}
	return v, nil
}

// TestRatesOfRefusedOrders are notified as well, whatever the order was refused for.
func TestRatesOfRefusedOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{&stock.ShortageError{Shortages: []stock.Shortage{{SKU: "s1", Requested: 1}}}, 409},
		{&order.UnknownSKUError{SKUs: []string{"s1"}}, 422},
		{errors.New("broken"), 500},
		{stock.ErrBusy, 503},
	} {
		domain := newMemory(func(context.Context) (order.Order, error) { return order.Order{}, c.err })
		s := newHandler(t, httpapi.Config{Orders: domain, Stock: domain, Rates: &rates{left: map[string]int{"c1": 2}}})
		if status, header, _ := s.send(t, post(basket)); status != c.want || header.Get("RateLimit") != `"customer";r=1;t=2` {
			t.Errorf("%v: %d %v", c.err, status, header)
		}
	}
}

// TestRates limits the orders of one customer, and nothing else.
func TestRates(t *testing.T) {
	t.Parallel()
	r := &rates{left: map[string]int{"c1": 2, "c2": 2}}
	domain := newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil })
	s := newHandler(t, httpapi.Config{Orders: domain, Stock: domain, Rates: r})
	for i, want := range []int{201, 201, 429, 429} {
		status, header, p := s.send(t, post(basket, "Prefer", "wait=1"))
		if status != want || header.Get("RateLimit-Policy") != `"customer";q=2` || header.Get("RateLimit") != fmt.Sprintf(`"customer";r=%d;t=2`, max(0, 1-i)) {
			t.Errorf("order %d: %d %v", i, status, header)
		}
		if want == 429 {
			if wantType(t, p, "rate-limited"); header.Get("Retry-After") != "3" || header.Get("Preference-Applied") != "" {
				t.Errorf("order %d: %v", i, header)
			}
		}
	}
	if status, _, _ := s.send(t, post(strings.Replace(basket, "c1", "c2", 1))); status != 201 {
		t.Errorf("another customer: %d", status)
	}
	asked := r.asked
	for _, op := range operations {
		if op.path == orders {
			continue
		}
		req := httptest.NewRequest(op.method, op.path, strings.NewReader(op.body))
		if op.body != "" {
			req.Header.Set("Content-Type", jsonType)
		}
		if status, header, _ := s.send(t, req); status != 200 || header.Get("RateLimit") != "" {
			t.Errorf("%s %s: %d %v", op.method, op.path, status, header)
		}
	}
	if r.asked != asked {
		t.Errorf("asked %d times about what is not limited", r.asked-asked)
	}
	if domain.work != 7 { // three orders, and four other operations
		t.Errorf("%d operations", domain.work)
	}
	// A request that is refused for another reason does not count.
	s.must(t, 422, http.MethodPost, orders, `{}`)
	if r.asked != asked {
		t.Error("asked about an order that is none")
	}
}

// TestRateOfExtensions: each changes and stores something, unlike most payments and cancellations.
func TestRateOfExtensions(t *testing.T) {
	t.Parallel()
	r := &rates{left: map[string]int{"c1": 2}}
	s := newHandler(t, httpapi.Config{Orders: newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil }), Rates: r, Identity: keys})
	for i, want := range []int{200, 200, 429} {
		if status, answer := s.as(t, "owner", http.MethodPost, unknown+"/extend", `{"by_seconds":1}`); status != want {
			t.Errorf("extension %d: %d %v, want %d", i, status, answer, want)
		}
	}
	for _, c := range []struct{ key, path, body string }{
		{"owner", "/cancel", ""}, {"owner", "/pay", `{"payment_id":"p1"}`}, {"admin", "/extend", `{"by_seconds":1}`},
	} {
		if status, answer := s.as(t, c.key, http.MethodPost, unknown+c.path, c.body); status != 200 {
			t.Errorf("%s %s: %d %v", c.key, c.path, status, answer)
		}
	}
}

// TestConcurrencyLimitNamesLimitAndDelay says how many orders may be placed at once, and when to try again.
func TestConcurrencyLimitNamesLimitAndDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config                httpapi.Config
		err                   error
		policy, limit, refuge string
	}{
		{httpapi.Config{}, order.ErrConcurrencyLimit, "", "", "1"},
		{httpapi.Config{}, fmt.Errorf("full: %w", &permits.ConcurrencyLimitError{RetryAfter: 1200 * time.Millisecond}), "", "", "2"},
		{
			httpapi.Config{Permits: func() permits.Stats { return permits.Stats{Permits: 64, Reset: time.Second} }},
			order.ErrConcurrencyLimit, `"orders";q=64;qu="concurrent-requests"`, `"orders";r=0;t=1`, "1",
		},
		{
			httpapi.Config{
				Permits: func() permits.Stats { return permits.Stats{Permits: 64} },
				Rates:   &rates{left: map[string]int{"c1": 2}},
			},
			order.ErrConcurrencyLimit, `"orders";q=64;qu="concurrent-requests", "customer";q=2`, `"orders";r=0;t=1, "customer";r=1;t=2`, "1",
		},
	} {
		c.config.Orders = failing(c.err)
		s := newHandler(t, c.config)
		status, header, p := s.send(t, post(basket))
		if wantType(t, p, "concurrency-limit"); status != http.StatusTooManyRequests ||
			header.Get("RateLimit-Policy") != c.policy || header.Get("RateLimit") != c.limit || header.Get("Retry-After") != c.refuge {
			t.Errorf("%d %v, want %q and %q", status, header, c.policy, c.limit)
		}
	}
}

// TestPurchaseLimitOfASKU is set when it is created, and holds.
func TestPurchaseLimitOfASKU(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	create := `{"on_hand":9,"strategy":"conditional","purchase_limit":3}`
	if got := s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", create); got["purchase_limit"] != 3.0 {
		t.Errorf("created %v", got)
	}
	s.must(t, 200, http.MethodPut, "/api/v1/skus/s1", create)
	wantType(t, s.must(t, 409, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`), "sku-exists")
	if got := s.must(t, 201, http.MethodPut, "/api/v1/skus/s2", `{"on_hand":9,"strategy":"conditional","purchase_limit":0}`); got["purchase_limit"] != nil {
		t.Errorf("created %v", got)
	}
	s.place(t)
	exceeds := func(s *shop, slug, exceeded string) {
		t.Helper()
		p := s.must(t, 409, http.MethodPost, orders, basket)
		if wantType(t, p, slug); fmt.Sprint(p["exceeded"]) != exceeded {
			t.Errorf("exceeded %v, want %s", p["exceeded"], exceeded)
		}
	}
	exceeds(s, "purchase-limit", "map[had:2 limit:3 sku:s1]")
	for _, bad := range []string{"-1", "1.5", "1000000001", `"3"`, "null"} {
		body := strings.Replace(create, ":3", ":"+bad, 1)
		wantType(t, s.must(t, 422, http.MethodPut, "/api/v1/skus/s3", body), "invalid-request")
	}
	over := newShopWith(t, order.Config{MaxOpen: 1})
	over.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	id := over.place(t)
	exceeds(over, "open-orders-limit", "map[had:1 limit:1]")
	over.must(t, 200, http.MethodPost, orders+"/"+id+"/cancel", "")
	over.place(t)
}

// The cluster comes with the load of the instance that responds, also without any limit.
func TestClusterHasTheLoadOfTheInstance(t *testing.T) {
	t.Parallel()
	domain := newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil })
	limited := httpapi.Config{
		Orders: domain, Stock: domain, Waiting: func() int { return 5 },
		Permits: func() permits.Stats { return permits.Stats{Permits: 64, InUse: 3, Degraded: true} },
	}
	for _, c := range []struct {
		config httpapi.Config
		want   string
	}{
		{httpapi.Config{Orders: domain, Stock: domain}, "map[degraded:false in_use:0 instance:i1 permits:0 waiting:0]"},
		{limited, "map[degraded:true in_use:3 instance:i1 permits:64 waiting:5]"},
	} {
		if status, _, answer := newHandler(t, c.config).call(t, http.MethodGet, "/api/v1/cluster", ""); status != http.StatusOK || fmt.Sprint(answer["load"]) != c.want {
			t.Errorf("%d %v, want the load %s", status, answer, c.want)
		}
	}
}
