package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"example.com/shop/internal/order"
)

// An order that nobody paid reads as expired before anything has come by to
// expire it, and whoever pays then is told why that is too late.
func TestLatePayment(t *testing.T) {
	t.Parallel()
	s := newShopWith(t, order.Config{TTL: time.Millisecond, MaxLife: time.Hour})
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":5,"strategy":"conditional"}`)
	id := s.place(t)
	path := "/api/v1/orders/" + id
	for end := time.Now().Add(time.Minute); s.must(t, 200, http.MethodGet, path, "")["status"] != "EXPIRED"; {
		if time.Now().After(end) {
			t.Fatal("an order of 1 ms is open for a minute")
		}
	}
	before := s.books(t)
	for _, late := range []struct{ path, body string }{
		{"/pay", `{"payment_id":"p1"}`}, {"/cancel", ""}, {"/extend", `{"by_seconds":1}`},
	} {
		p := s.must(t, 409, http.MethodPost, path+late.path, late.body)
		if wantType(t, p, "order-state-conflict"); p["state"] != "EXPIRED" || p["order_id"] != id {
			t.Errorf("%s: %v", late.path, p)
		}
	}
	if after := s.books(t); after != before {
		t.Errorf("books changed from\n%s\nto\n%s", before, after)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":5,"strategy":"conditional"}`)
	id := s.place(t)
	path := "/api/v1/orders/" + id
	expires := parseTime(t, s.must(t, 200, http.MethodGet, path, "")["expires_at"])
	for range 3 { // 15 minutes at first, and an hour at most
		o := s.must(t, 200, http.MethodPost, path+"/extend", `{"by_seconds":900}`)
		expires = expires.Add(15 * time.Minute)
		if got := parseTime(t, o["expires_at"]); !got.Equal(expires) || o["status"] != "PENDING" {
			t.Errorf("expires at %v, want %v: %v", got, expires, o)
		}
	}
	wantType(t, s.must(t, 422, http.MethodPost, path+"/extend", `{"by_seconds":1}`), "invalid-request")
	if got := parseTime(t, s.must(t, 200, http.MethodGet, path, "")["expires_at"]); !got.Equal(expires) {
		t.Errorf("expires at %v, want %v", got, expires)
	}
	s.must(t, 200, http.MethodPost, path+"/pay", `{"payment_id":"p1"}`)
	p := s.must(t, 409, http.MethodPost, path+"/extend", `{"by_seconds":1}`)
	if wantType(t, p, "order-state-conflict"); p["state"] != "CONFIRMED" {
		t.Errorf("conflict: %v", p)
	}
}
