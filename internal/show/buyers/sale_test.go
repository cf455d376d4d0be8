package buyers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/show/buyers"
)

// A sale continues at a service that answers again and again that all permits are in use. It ends at a service whose
// lock service is unavailable.
func TestProgressOfASale(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   int64 // calls for a sale of one attempt, which is refused twice
	}{
		"concurrency limit":               {http.StatusTooManyRequests, 3},
		"the lock service is unavailable": {http.StatusServiceUnavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, told atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) <= 2 {
					w.WriteHeader(c.status)
					return
				}
				w.WriteHeader(http.StatusConflict)
			}))
			defer server.Close()
			s := buyers.New([]string{server.URL}, 32).Sell(t.Context(), "a", 1, func(buyers.Outcome, int, time.Duration) { told.Add(1) })
			if s.Rejected != 1 || s.Errors != 0 || told.Load() != c.want {
				t.Errorf("%d rejected, %d errors, progress was reported %d times, want %d", s.Rejected, s.Errors, told.Load(), c.want)
			}
		})
	}
}

// A customer whose order has an unknown outcome reads the order: it counts if it exists, and is a failure otherwise.
func TestOrderWithUnknownOutcomeIsRead(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]buyers.Sale{http.StatusOK: {Accepted: 1}, http.StatusNotFound: {Errors: 1}} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"type":"/docs/problems/outcome-unknown","order_id":"o1"}`)
			case r.URL.Path != "/api/v1/orders/o1":
				t.Errorf("asked for %s", r.URL)
			case asked.Add(1) == 1:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				w.WriteHeader(status)
			}
		}))
		defer server.Close()
		s := buyers.New([]string{server.URL}, 32).Sell(t.Context(), "a", 1, func(buyers.Outcome, int, time.Duration) {})
		if s.Accepted != want.Accepted || s.Errors != want.Errors {
			t.Errorf("status %d: %d accepted, %d errors", status, s.Accepted, s.Errors)
		}
	}
}
