package blackbox_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
)

const basket = `{"customer_id":"c1","items":[{"sku":"s1","quantity":2}]}`

// Every answer below is held against the specification by call.

func TestSKUIsCreatedReadAndRestocked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	want := map[string]any{
		"sku": "s1", "strategy": "conditional", "on_hand": 5.0, "reserved": 0.0, "available": 5.0, "version": 1.0, "fence": 0.0,
	}
	create := `{"on_hand":5,"strategy":"conditional"}`
	if got := s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", create); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if got := s.must(t, 200, http.MethodPut, "/api/v1/skus/s1", create); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if got := s.must(t, 200, http.MethodGet, "/api/v1/skus/s1", ""); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	for _, other := range []string{`{"on_hand":6,"strategy":"conditional"}`, `{"on_hand":5,"strategy":"naive"}`} {
		wantType(t, s.must(t, 409, http.MethodPut, "/api/v1/skus/s1", other), "sku-exists")
	}
	got := s.must(t, 200, http.MethodPost, "/api/v1/skus/s1/restock", `{"quantity":3}`)
	if got["on_hand"] != 8.0 || got["available"] != 8.0 || got["version"] != 2.0 {
		t.Errorf("restocked: %v", got)
	}
}

func TestOrderIsPlacedPaidAndRead(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":3,"strategy":"conditional"}`)
	status, header, placed := s.call(t, http.MethodPost, "/api/v1/orders", basket)
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, placed)
	}
	id, _ := placed["id"].(string)
	if got := header.Get("Location"); got != "/api/v1/orders/"+id {
		t.Errorf("Location is %q for order %q", got, id)
	}
	if placed["status"] != "PENDING" || placed["customer_id"] != "c1" {
		t.Errorf("placed: %v", placed)
	}
	if want := []any{map[string]any{"sku": "s1", "quantity": 2.0}}; !cmp.Equal(want, placed["items"]) {
		t.Error(cmp.Diff(want, placed["items"]))
	}
	created, expires := parseTime(t, placed["created_at"]), parseTime(t, placed["expires_at"])
	if got := expires.Sub(created); got != 15*time.Minute {
		t.Errorf("expires after %v", got)
	}

	path := "/api/v1/orders/" + id
	if got := s.must(t, 200, http.MethodGet, path, ""); !cmp.Equal(placed, got) {
		t.Error(cmp.Diff(placed, got))
	}
	placed["status"] = "CONFIRMED"
	for range 2 { // the same payment, the same answer
		if got := s.must(t, 200, http.MethodPost, path+"/pay", `{"payment_id":"p1"}`); !cmp.Equal(placed, got) {
			t.Error(cmp.Diff(placed, got))
		}
	}
	for _, late := range []struct{ path, body string }{{path + "/pay", `{"payment_id":"p2"}`}, {path + "/cancel", ""}} {
		p := s.must(t, 409, http.MethodPost, late.path, late.body)
		wantType(t, p, "order-state-conflict")
		if p["state"] != "CONFIRMED" || p["order_id"] != id {
			t.Errorf("conflict: %v", p)
		}
	}
	short := s.must(t, 409, http.MethodPost, "/api/v1/orders", basket)
	wantType(t, short, "out-of-stock")
	want := []any{map[string]any{"sku": "s1", "requested": 2.0, "available": 1.0}}
	if !cmp.Equal(want, short["shortages"]) {
		t.Error(cmp.Diff(want, short["shortages"]))
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if got := s.must(t, 200, http.MethodGet, "/api/v1/skus", ""); !cmp.Equal(map[string]any{"skus": []any{}}, got) {
		t.Errorf("empty: %v", got)
	}
	for _, sku := range []string{"c", "a", "b"} {
		s.must(t, 201, http.MethodPut, "/api/v1/skus/"+sku, `{"on_hand":1,"strategy":"naive"}`)
	}
	for _, c := range []struct {
		query string
		want  string
		next  any
	}{
		{"", "abc", nil},
		{"?limit=3", "abc", nil},
		{"?limit=2", "ab", "b"},
		{"?limit=2&cursor=b", "c", nil},
		{"?limit=2&after=b", "c", nil},
		{"?cursor=c", "", nil},
		{"?after=c", "", nil},
	} {
		page := s.must(t, 200, http.MethodGet, "/api/v1/skus"+c.query, "")
		got := ""
		for _, e := range page["skus"].([]any) {
			got += e.(map[string]any)["sku"].(string)
		}
		if got != c.want || page["next"] != c.next {
			t.Errorf("%q: %q and next %v, want %q and %v", c.query, got, page["next"], c.want, c.next)
		}
	}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":5,"strategy":"for-update"}`)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s2", `{"on_hand":0,"strategy":"local"}`)
	s.must(t, 200, http.MethodPost, "/api/v1/orders/"+s.place(t)+"/pay", `{"payment_id":"p1"}`)
	s.place(t)
	want := map[string]any{"ok": true, "skus": []any{map[string]any{
		"sku": "s1", "strategy": "for-update", "stocked": 5.0, "on_hand": 3.0, "reserved": 2.0, "sold": 2.0, "accepted": 4.0,
		"oversold": 0.0, "undersold": 0.0, "lost_updates": 0.0, "overdue": 0.0, "ledger_ok": true, "ok": true, "right_to": 0.0, "checked": 4.0,
	}}}
	if got := s.must(t, 200, http.MethodGet, "/api/v1/audit?sku=s1", ""); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
	if got := s.must(t, 200, http.MethodGet, "/api/v1/audit", ""); len(got["skus"].([]any)) != 2 {
		t.Errorf("all: %v", got)
	}
}

func wantType(t *testing.T, problem map[string]any, slug string) {
	t.Helper()
	if got, want := problem["type"], "/docs/problems/"+slug; got != want {
		t.Errorf("type is %v, want %s: %v", got, want, problem)
	}
}

func parseTime(t *testing.T, v any) time.Time {
	t.Helper()
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Location() != time.UTC {
		t.Errorf("time %v: %v", v, err)
	}
	return at
}

// An unpaid order reads as expired before its timer has fired. A payment is then refused with that reason.
func TestPaymentAfterExpiryIsRejected(t *testing.T) {
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
