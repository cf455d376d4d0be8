package blackbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// TestPagesOfOrders show each one once, the latest first, while others are placed.
func TestPagesOfOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":99,"strategy":"conditional"}`)
	if got := s.must(t, 200, http.MethodGet, orders, ""); !cmp.Equal(map[string]any{"orders": []any{}}, got) {
		t.Errorf("empty: %v", got)
	}
	var want []string
	for range 7 {
		want = append(want, s.place(t))
	}
	slices.Reverse(want)
	s.must(t, 200, http.MethodPost, orders+"/"+want[1]+"/cancel", "")
	for query, some := range map[string][]string{
		"?limit=1": want, "?limit=3": want, "?limit=7": want, "?limit=100": want,
		"?limit=2&sku=s1": want, "?sku=s2": nil,
		"?limit=1&status=CANCELLED": want[1:2], "?limit=2&status=PENDING": slices.Delete(slices.Clone(want), 1, 2), "?status=QUEUED": nil,
	} {
		var got []string
		for at := query; len(got) <= len(want); {
			page := s.must(t, 200, http.MethodGet, orders+at, "")
			for _, o := range page["orders"].([]any) {
				got = append(got, o.(map[string]any)["id"].(string))
			}
			next, more := page["next"].(string)
			if !more {
				break
			}
			at = query + "&cursor=" + next
		}
		if diff := cmp.Diff(some, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	first := s.must(t, 200, http.MethodGet, orders+"?limit=2", "")
	s.place(t)
	second := s.must(t, 200, http.MethodGet, orders+"?limit=2&cursor="+first["next"].(string), "")
	if got := second["orders"].([]any)[0].(map[string]any)["id"]; got != want[2] {
		t.Errorf("the second page begins with %v, want %v", got, want[2])
	}
}

// lists is a domain with endless orders, of which it reports what it was asked for.
type lists struct {
	fake
	asked order.Filter
}

func (l *lists) Orders(_ context.Context, f order.Filter) (order.Page, error) {
	l.asked = f
	next := f.Before
	if next == "" {
		next = someOrder
	}
	return order.Page{Next: next}, nil
}

// TestForgedCursors are refused. A cursor of another list begins a page of the caller's own orders.
func TestForgedCursors(t *testing.T) {
	t.Parallel()
	var domain lists
	s := newHandler(t, httpapi.Config{Orders: &domain, Identity: keys})
	next := func(key, query string) string {
		_, page := s.as(t, key, http.MethodGet, orders+query, "")
		return page["next"].(string)
	}
	cursor := next("owner", "")
	for _, other := range []string{cursor, next("other", ""), next("admin", ""), next("owner", "?sku=s1")} {
		if next("owner", "?limit=3&cursor="+other) != cursor || domain.asked.Before != someOrder || domain.asked.Limit != 3 || domain.asked.Owner != "c1" {
			t.Errorf("asked for %+v", domain.asked)
		}
	}
	forged := []string{
		"a", "AA", "%00", "", cursor + "A", cursor[1:], cursor + "=", strings.ToUpper(cursor), strings.ReplaceAll(cursor, "-", ""),
		"urn:uuid:" + cursor, "{" + cursor + "}", strings.Repeat("A", 64), strings.Repeat("A", 65),
	}
	for _, c := range forged {
		domain.asked = order.Filter{}
		status, p := s.as(t, "owner", http.MethodGet, orders+"?cursor="+c, "")
		if wantType(t, p, "malformed-request"); status != http.StatusBadRequest || domain.asked.Limit != 0 {
			t.Errorf("%q: %d, asked %+v", c, status, domain.asked)
		}
	}
}

// FuzzCursor takes any text for a cursor. An accepted cursor has the form of an issued one.
func FuzzCursor(f *testing.F) {
	var domain lists
	s := newHandler(f, httpapi.Config{Orders: &domain})
	ask := func(tb testing.TB, cursor string) (int, string) {
		tb.Helper()
		r := httptest.NewRequest(http.MethodGet, orders, nil)
		q := r.URL.Query()
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		r.URL.RawQuery = q.Encode()
		status, _, answer := s.send(tb, r)
		next, _ := answer["next"].(string)
		return status, next
	}
	_, good := ask(f, "")
	for _, seed := range []string{good, good[:len(good)-1] + string(good[len(good)-1]+1), good + "A", good[:10], "", "AQ", "!", "\x00", strings.Repeat("A", 34)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if cursor == "" {
			return
		}
		if status, _ := ask(t, cursor); status == http.StatusOK != order.ValidID(cursor) || status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("%q: %d", cursor, status)
		}
	})
}

// TestLedgerOfAnOrder of an order is in the ledger.
func TestLedgerOfAnOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s2", `{"on_hand":9,"strategy":"optimistic"}`)
	id := s.must(t, 201, http.MethodPost, orders, `{"customer_id":"c1","items":[{"sku":"s2","quantity":1},{"sku":"s1","quantity":2}]}`)["id"].(string)
	s.must(t, 200, http.MethodPost, orders+"/"+id+"/pay", `{"payment_id":"p1"}`)
	var got []string
	for _, e := range s.must(t, 200, http.MethodGet, orders+"/"+id+"/movements", "")["movements"].([]any) {
		event := e.(map[string]any)
		parseTime(t, event["at"])
		got = append(got, fmt.Sprint(event["movement"], event["sku"], event["quantity"], event["instance"], event["fence"]))
	}
	want := []string{"RESERVEs12i1<nil>", "RESERVEs21i1<nil>", "CONFIRMs12i1<nil>", "CONFIRMs21i1<nil>"}
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], " ", "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.must(t, 404, http.MethodGet, unknown+"/movements", "")
}

// TestStrategies are listed with whether they can be had.
func TestStrategies(t *testing.T) {
	t.Parallel()
	got := newShop(t).must(t, 200, http.MethodGet, "/api/v1/strategies", "")["strategies"].([]any)
	names := stock.NewStrategies(stock.Lockers{}).Names()
	if len(got) != len(names) {
		t.Fatalf("got %v", got)
	}
	stores := map[string]string{"redis-unfenced": "redis", "redis": "redis", "redlock": "redlock", "zookeeper": "zookeeper", "etcd": "etcd", "lua": "redis"}
	for i, e := range got {
		service := strings.TrimSuffix(names[i], "-cohort")
		want := map[string]any{"name": names[i], "available": stores[service] == "" && service != "sql"}
		if store := stores[service]; store != "" {
			want["store"] = store
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Error(diff)
		}
	}
}

// TestETags change with what they stand for, and spare its transport.
func TestETags(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":9,"strategy":"conditional"}`)
	for path, change := range map[string]func(){
		orders + "/" + s.place(t): nil,
		"/api/v1/skus/s1":         func() { s.must(t, 200, http.MethodPost, "/api/v1/skus/s1/restock", `{"quantity":1}`) },
	} {
		get := func(none ...string) (status int, tag string, length int) {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header["If-None-Match"] = none
			status, header, body := s.do(r)
			s.conforms(t, r, status, header, body)
			return status, header.Get("ETag"), len(body)
		}
		_, tag, _ := get()
		if !strings.HasPrefix(tag, `"`) || len(tag) < 20 {
			t.Errorf("%s: ETag %s", path, tag)
		}
		for list, want := range map[string]int{
			tag: 304, "*": 304, "W/" + tag: 304, `"a", ` + tag + `, "b"`: 304, `"a,b",W/"c" , ` + tag: 304, `"a\", ` + tag: 304,
			"": 200, `"a"`: 200, strings.Trim(tag, `"`): 200, "w/" + tag: 200, `"` + tag: 200, ",,;": 200, strings.Replace(tag, tag[1:3], "__", 1): 200,
		} {
			if status, again, length := get(list); status != want || again != tag || (length == 0) != (want == 304) {
				t.Errorf("%s: If-None-Match %s: %d, %s, %d bytes", path, list, status, again, length)
			}
		}
		if status, _, _ := get(`"a"`, tag); status != http.StatusNotModified {
			t.Errorf("%s: two fields: %d", path, status)
		}
		if change == nil {
			change = func() { s.must(t, 200, http.MethodPost, path+"/cancel", "") }
		}
		change()
		if status, now, _ := get(tag); status != http.StatusOK || now == tag {
			t.Errorf("%s changed: %d, %s", path, status, now)
		}
	}
}

// TestTraceOfAnOrder is what the instance has recorded. Without traces, there is neither a span nor a time since which they are kept.
func TestTraceOfAnOrder(t *testing.T) {
	t.Parallel()
	id, since := order.NewID(), time.Unix(1, 0).UTC()
	recorded := httpapi.OrderTrace{Since: &since, Spans: []httpapi.Span{
		{ID: "1", Name: "order.place", Instance: "i1", StartUs: 7, DurationUs: 8, Attributes: map[string]string{"order.id": id}},
		{ID: "2", Within: "1", Name: "COMMIT", Instance: "i1", StartUs: 9, DurationUs: 1, Failed: true, Attributes: map[string]string{}},
	}}
	for _, c := range []struct {
		trace func(string) httpapi.OrderTrace
		want  map[string]any
	}{
		{nil, map[string]any{"spans": []any{}}},
		{func(of string) httpapi.OrderTrace {
			if of != id {
				t.Errorf("asked for order %s", of)
			}
			return recorded
		}, map[string]any{"since": "1970-01-01T00:00:01Z", "spans": []any{
			map[string]any{"instance": "i1", "id": "1", "name": "order.place", "start_us": 7.0, "duration_us": 8.0, "failed": false, "attributes": map[string]any{"order.id": id}},
			map[string]any{"instance": "i1", "id": "2", "within": "1", "name": "COMMIT", "start_us": 9.0, "duration_us": 1.0, "failed": true, "attributes": map[string]any{}},
		}}},
	} {
		s := newHandler(t, httpapi.Config{Trace: c.trace})
		if diff := cmp.Diff(c.want, s.must(t, 200, http.MethodGet, orders+"/"+id+"/trace", "")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
