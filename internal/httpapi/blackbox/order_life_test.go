package blackbox_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// described returns the lines below a heading of the description of the API.
func described(t *testing.T, heading string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(specified(t, everywhere).Info.Description, "\n**"+heading+"**\n")
	if !ok {
		t.Fatalf("the description has no heading %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n**")
	return strings.Split(text, "\n")
}

// TestExampleFromEndToEnd sends the requests of the example in the description of the API, and gets the responses that it names.
func TestExampleFromEndToEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	id, n := "", 0
	for _, line := range described(t, "An example from end to end") {
		m := regexp.MustCompile(`^(GET|PUT|POST) +(\S+)(?: +(\{\S+\}))? +(\d{3})(?: +(?:Idempotency-Key: (\S+)|(\S+)))?$`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n++
		r := httptest.NewRequest(m[1], strings.ReplaceAll(m[2], "{id}", id), strings.NewReader(m[3]))
		if m[3] != "" {
			r.Header.Set("Content-Type", jsonType)
		}
		if m[5] != "" {
			r.Header.Set("Idempotency-Key", m[5])
		}
		status, _, answer := s.send(t, r)
		if strconv.Itoa(status) != m[4] {
			t.Errorf("%s: %d %v", line, status, answer)
		}
		kind, _ := answer["type"].(string)
		if want := m[6]; want != "" && want != answer["status"] && !strings.HasSuffix(kind, "/"+want) {
			t.Errorf("%s: %v", line, answer)
		}
		if status == http.StatusCreated && answer["id"] != nil {
			if got, _ := answer["id"].(string); id == "" || id == got {
				id = got
			} else {
				t.Errorf("%s: order %s is not %s", line, got, id)
			}
		}
		if ok, is := answer["ok"].(bool); is && !ok {
			t.Errorf("%s: %v", line, answer)
		}
	}
	if n != 11 {
		t.Errorf("%d requests", n)
	}
}

// TestTransitionsAreThoseOfTheTable: in each state, the requests that the table of the description has lead to the state that it
// names, and the others are conflicts.
func TestTransitionsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	table := map[string]string{}
	row := regexp.MustCompile(`^\| (\w+) \| (\w+Order)(, the same payment)? \| (\w+) \|$`)
	for _, line := range described(t, "The life of an order") {
		if m := row.FindStringSubmatch(line); m != nil {
			table[m[1]+" "+m[2]] = m[4]
		}
	}
	if len(table) != 6 {
		t.Fatalf("the table has %v", table)
	}
	store := newStore(t)
	strategies := stock.NewStrategies(stock.Lockers{})
	shelves := stock.NewService(store, strategies, nil)
	s := newHandler(t, httpapi.Config{Orders: order.NewService(store, strategies, order.Config{}), Stock: shelves})
	brief := newHandler(t, httpapi.Config{Orders: order.NewService(store, strategies, order.Config{TTL: time.Millisecond}), Stock: shelves})
	s.must(t, 201, http.MethodPut, "/api/v1/skus/s1", `{"on_hand":100,"strategy":"conditional"}`)
	for _, state := range order.Statuses() {
		for operation, call := range map[string][2]string{"payOrder": {"pay", `{"payment_id":"p1"}`}, "cancelOrder": {"cancel", ""}, "extendOrder": {"extend", `{"by_seconds":1}`}} {
			id := orderIn(t, s, brief, store, state)
			status, _, answer := s.call(t, http.MethodPost, orders+"/"+id+"/"+call[0], call[1])
			next, ok := table[string(state)+" "+operation]
			if ok && (status != http.StatusOK || answer["status"] != next) || !ok && (status != http.StatusConflict || answer["state"] != string(state)) {
				t.Errorf("%s of a %s order: %d %v, want %q", operation, state, status, answer, next)
			}
		}
	}
}

// orderIn returns an order that reads as being in a state. The orders of brief expire at once.
func orderIn(t *testing.T, s, brief *shop, store order.Store, state order.Status) (id string) {
	t.Helper()
	switch state {
	case order.Expired:
		id = brief.place(t)
	case order.Queued, order.Rejected:
		r := &order.Request{Order: someOrderOf("c1"), TTL: time.Hour}
		if r.Order.ID = order.NewID(); state == order.Rejected {
			r.TTL = time.Millisecond
		}
		if err := store.Enqueue(t.Context(), r, time.Hour); err != nil {
			t.Fatal(err)
		}
		id = r.Order.ID
	default:
		id = s.place(t)
	}
	switch state {
	case order.Confirmed:
		s.must(t, 200, http.MethodPost, orders+"/"+id+"/pay", `{"payment_id":"p1"}`)
	case order.Cancelled:
		s.must(t, 200, http.MethodPost, orders+"/"+id+"/cancel", "")
	default:
	}
	testbedtest.Eventually(t, "the order is "+string(state), func() bool {
		return s.must(t, 200, http.MethodGet, orders+"/"+id, "")["status"] == string(state)
	})
	return id
}
