package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// What the receiver does with a request, by its number modulo 12. Of those that it refuses, and those that hang, it processes nothing.
const (
	refusal = 2 + iota
	lostResponse
	lateResponse
	hanging
)

// unreliable receives webhooks, and treats four of twelve requests badly.
type unreliable struct {
	release chan struct{} // ends requests that hang

	mu        sync.Mutex
	requests  int
	confirmed map[int64]stock.Entry // entries of responses with 200
	last      int64                 // of them
	unordered int                   // entries that came first after a later one
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct {
		Data struct{ Entries []stock.Entry }
	}
	if err != nil || json.Unmarshal(body, &m) != nil || len(m.Data.Entries) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	u.requests++
	fault := u.requests % 12
	if fault != refusal && fault != hanging {
		for _, e := range m.Data.Entries {
			if _, known := u.confirmed[e.ID]; !known && e.ID < u.last {
				u.unordered++
			}
			u.confirmed[e.ID], u.last = e, max(u.last, e.ID)
		}
	}
	u.mu.Unlock()
	switch fault {
	case refusal:
		w.WriteHeader(http.StatusInternalServerError)
	case hanging:
		<-u.release
	case lostResponse:
		panic(http.ErrAbortHandler)
	case lateResponse:
		<-time.After(500 * time.Millisecond)
	}
}

func (u *unreliable) entries() (n, unordered int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.confirmed), u.unordered
}

// TestWebhookGetsEachEntry sells at three instances, of which one is killed and one paused, to a receiver that fails, hangs, loses responses and
// answers late. It gets each entry of the ledger, with its content, and none for the first time after a later one.
func TestWebhookGetsEachEntry(t *testing.T) {
	t.Parallel()
	u := &unreliable{confirmed: make(map[int64]stock.Entry), release: make(chan struct{})}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(u.release) })
	s := newStage(t)
	all := s.three(t, "--webhook", server.URL, "--webhook-secret", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	all[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000000,"strategy":"redis-cohort"}`)
	var next atomic.Int64
	shoppers := &shoppers{client: customers(t), url: func() string { return all[next.Add(1)%2].url }}
	shoppers.shop(t.Context(), 6)
	wait := func(orders int) {
		t.Helper()
		from := shoppers.count()
		testbedtest.Eventually(t, "orders are placed", func() bool { return shoppers.count() >= from+orders })
	}
	wait(100)
	all[2].signal(t, syscall.SIGSTOP)
	wait(100)
	all[2].signal(t, syscall.SIGCONT)
	all[2].kill()
	wait(100)
	shoppers.stop(t, all[0])

	db := testbedtest.OpenSQL(t, s.database)
	want := make(map[int64]stock.Entry)
	rows, err := db.QueryContext(t.Context(), "SELECT l.id, l.movement, l.quantity, l.order_id, COALESCE(o.customer_id, ''), COALESCE(o.status, ''), l.instance, l.created_at FROM ledger l LEFT JOIN orders o ON o.id = l.order_id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var e stock.Entry
		var at int64
		if err := rows.Scan(&e.ID, &e.Movement, &e.Quantity, &e.OrderID, &e.CustomerID, &e.Status, &e.Instance, &at); err != nil {
			t.Fatal(err)
		}
		if e.At = time.UnixMicro(at).UTC(); e.Movement == stock.Reserve {
			e.Status = "PENDING" // whatever it is now
		}
		want[e.ID] = e
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "each entry is delivered", func() bool { n, _ := u.entries(); return n >= len(want) })
	u.mu.Lock()
	defer u.mu.Unlock()
	t.Logf("%d entries in %d requests", len(want), u.requests)
	if diff := cmp.Diff(want, u.confirmed); diff != "" {
		t.Errorf("-ledger +delivered: %.2000s", diff)
	}
	if u.requests < hanging {
		t.Errorf("%d requests did not meet each fault", u.requests)
	}
	if u.unordered > 0 {
		t.Errorf("%d entries came first after a later one", u.unordered)
	}
}
