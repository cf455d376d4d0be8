package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// keyring knows keys by their text.
type keyring map[string]identity.Caller

func (k keyring) Authenticate(_ context.Context, text string) (identity.Caller, error) {
	if text == "down" {
		return identity.Caller{}, fmt.Errorf("%w: sql: dial tcp 10.0.0.7:3306", identity.ErrUnavailable)
	}
	c, ok := k[text]
	if !ok {
		return identity.Caller{}, fmt.Errorf("%w: no key secret-prefix", identity.ErrUnauthenticated)
	}
	return c, nil
}

func (keyring) Watch(string, func()) func() { return func() {} }

var keys = keyring{
	"owner": {Customer: "c1"}, "other": {Customer: "c2"}, "admin": {Admin: true}, "both": {Customer: "c3", Admin: true}, "nobody": {},
}

// locked returns a shop and its handler for admins, which ask for keys.
func locked(tb testing.TB) (public, admin *shop) {
	tb.Helper()
	store := newStore(tb)
	strategies := stock.NewStrategies(stock.Lockers{})
	c := httpapi.Config{
		Orders: order.NewService(store, strategies, order.Config{}), Stock: stock.NewService(store, strategies, nil),
		Strategies: strategies, Identity: keys, Instance: "i1",
	}
	q, _ := newQueue(tb)
	schedule(tb, q, someOrderOf("c1").CreatedAt, "a")
	return newHandler(tb, c), newAdminWith(tb, httpapi.Config{Timers: q, Identity: keys})
}

// as sends a request with a key, or without one if it is empty.
func (s *shop) as(tb testing.TB, key, method, path, body string) (status int, answer map[string]any) {
	tb.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", jsonType)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if method == http.MethodGet && strings.HasSuffix(path, ".yaml") {
		status, _, _ = s.do(r)
		return status, nil
	}
	status, _, answer = s.send(tb, r)
	return status, answer
}

// TestCustomerCannotSeeOrdersOfAnother in lists, whatever they ask for.
func TestCustomerCannotSeeOrdersOfAnother(t *testing.T) {
	t.Parallel()
	public, _ := locked(t)
	public.as(t, "admin", http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	place := func(key, customer string) string {
		_, o := public.as(t, key, http.MethodPost, orders, strings.Replace(doors["placeOrder"].body, "c1", customer, 1))
		id, _ := o["id"].(string)
		return id
	}
	a, b, c, d := place("owner", "c1"), place("other", "c2"), place("admin", "c1"), place("both", "c2")
	for key, want := range map[string][]string{"owner": {c, a}, "other": {d, b}, "admin": {d, c, b, a}, "both": {d, c, b, a}} {
		for _, query := range []string{"", "?sku=s1", "?status=PENDING", "?limit=100&sku=s1&status=PENDING"} {
			if got := idsOf(t, public, key, query); !slices.Equal(got, want) {
				t.Errorf("%s%s sees %v, want %v", key, query, got, want)
			}
		}
	}
	for _, query := range []string{"?customer_id=c2", "?owner=c2", "?status=PENDING' OR '1'='1"} {
		if status, _ := public.as(t, "owner", http.MethodGet, orders+strings.ReplaceAll(query, " ", "%20"), ""); status != 400 {
			t.Errorf("%s: %d", query, status)
		}
	}
}

func idsOf(tb testing.TB, s *shop, key, query string) (all []string) {
	tb.Helper()
	_, page := s.as(tb, key, http.MethodGet, orders+query, "")
	list, _ := page["orders"].([]any)
	for _, o := range list {
		all = append(all, o.(map[string]any)["id"].(string))
	}
	return all
}

// TestIdempotencyKeysOfCustomersAreSeparate: the same Idempotency-Key of two customers is two keys, and what one
// of them was answered is not for the other.
func TestIdempotencyKeysOfCustomersAreSeparate(t *testing.T) {
	t.Parallel()
	m := newMemory(func(context.Context) (order.Order, error) { return someOrderOf("c1"), nil })
	s := newHandler(t, httpapi.Config{Orders: m, Stock: m, Identity: keys})
	for i, key := range []string{"owner", "other", "admin"} {
		r := httptest.NewRequest(http.MethodPost, unknown+"/cancel", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Idempotency-Key", "k1")
		if _, header, _ := s.send(t, r); header.Get("Idempotent-Replayed") != "" || m.work != i+1 {
			t.Errorf("%s: %v after %d", key, header, m.work)
		}
	}
	// An admin who orders for a customer does not get what the customer was answered.
	for _, again := range []bool{false, true} {
		for _, key := range []string{"owner", "admin"} {
			_, header, _ := s.send(t, post(basket, "Authorization", "Bearer "+key, "Idempotency-Key", "k2"))
			if replayed := header.Get("Idempotent-Replayed") != ""; replayed != again {
				t.Errorf("%s: replayed %v, want %v", key, replayed, again)
			}
		}
	}
	// Another customer with the key of the request gets nothing, and neither does one without a key.
	for key, want := range map[string]int{"other": 403, "": 401, "nobody": 401} {
		if status, header, _ := s.send(t, post(basket, "Authorization", "Bearer "+key, "Idempotency-Key", "k2")); status != want || header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%q: %d %v", key, status, header)
		}
	}
}

// TestCredentials reads Authorization as RFC 6750 has it, and says nothing about why a key is none.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: failing(order.ErrNotFound), Identity: keys})
	for _, c := range []struct {
		fields []string
		want   int
	}{
		{[]string{"Bearer owner"}, 404},
		{[]string{"bearer owner"}, 404},
		{[]string{"Bearer  owner"}, 404},
		{nil, 401},
		{[]string{""}, 401},
		{[]string{"Bearer"}, 401},
		{[]string{"Bearer "}, 401},
		{[]string{"owner"}, 401},
		{[]string{"Basic owner"}, 401},
		{[]string{"Bearerowner"}, 401},
		{[]string{"Bearer owner", "Bearer owner"}, 401},
		{[]string{"Bearer owner, Bearer admin"}, 401},
		{[]string{"Bearer " + strings.Repeat("x", 1<<20)}, 401},
		{[]string{"Bearer ' OR '1'='1"}, 401},
		{[]string{"Bearer nobody"}, 401},
		{[]string{"Bearer down"}, 503},
	} {
		r := httptest.NewRequest(http.MethodGet, orders+"/"+someOrder, nil)
		r.Header["Authorization"] = c.fields
		status, header, p := s.send(t, r)
		if status != c.want {
			t.Errorf("%.60q: %d, want %d", c.fields, status, c.want)
		}
		if asked := header.Get("WWW-Authenticate"); (asked == `Bearer realm="shop"`) != (c.want == 401) {
			t.Errorf("%.60q: WWW-Authenticate %q", c.fields, asked)
		}
		if text := fmt.Sprint(p); strings.Contains(text, "secret-prefix") || strings.Contains(text, "10.0.0.7") {
			t.Errorf("%.60q: %s", c.fields, text)
		}
	}
}

// TestOpenPathsNeedNoAuthentication: what is open stays open while keys cannot be checked.
func TestOpenPathsNeedNoAuthentication(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Identity: keyring(nil)})
	for _, path := range []string{"/livez", "/readyz", "/docs", "/docs/problems", "/docs/problems/lock-timeout", "/api/v1/openapi.yaml"} {
		if status, _, body := s.do(httptest.NewRequest(http.MethodGet, path, nil)); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	admin := newAdminWith(t, httpapi.Config{Timers: brokenTimers{err: errors.New("must not be asked")}, Identity: keys})
	for key, want := range map[string]int{"": 401, "owner": 403, "admin": 200} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/cmdline", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		if status, _, _ := admin.do(r); status != want {
			t.Errorf("profiles with the key %q: %d", key, status)
		}
	}
}

// newStore returns a database of its own.
func newStore(tb testing.TB) *sqlstore.Store {
	tb.Helper()
	return openStore(tb, "sqlite:"+tb.TempDir()+"/shop.db")
}

// openStore opens a database until the test ends, and migrates it.
func openStore(tb testing.TB, url string) *sqlstore.Store {
	tb.Helper()
	store, err := sqlstore.Open(tb.Context(), sqlstore.Config{URL: url, Instance: "i1"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return store
}
