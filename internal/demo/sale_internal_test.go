package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A service that says again and again that all permits are in use is at work, and a sale at it is
// not given up; one whose lock service is unavailable is not at work.
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
			s := newShop([]string{server.URL}).sell(t.Context(), "a", 1, func(int) { told.Add(1) })
			if s.rejected != 1 || s.errors != 0 || told.Load() != c.want {
				t.Errorf("%d rejected, %d errors, progress was reported %d times, want %d", s.rejected, s.errors, told.Load(), c.want)
			}
		})
	}
}

// Whose order is in doubt reads it: it counts if it is there, and is a failure otherwise.
func TestOrderWithUnknownOutcomeIsRead(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]sale{http.StatusOK: {accepted: 1}, http.StatusNotFound: {errors: 1}} {
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
		s := newShop([]string{server.URL}).sell(t.Context(), "a", 1, func(int) {})
		if s.accepted != want.accepted || s.errors != want.errors {
			t.Errorf("status %d: %d accepted, %d errors", status, s.accepted, s.errors)
		}
	}
}

// A SKU is on sale, though the service was too busy to say so at once.
func TestSKUIsCreatedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusOK, http.StatusOK}[asked.Add(1)-1])
	}))
	defer server.Close()
	s := newShop([]string{server.URL})
	if err := s.stock(t.Context(), "a", "naive", 1); err != nil {
		t.Error(err)
	}
	if err := s.stock(t.Context(), "a", "naive", 1); err == nil {
		t.Error("a SKU that is there already passes for a new one")
	}
}
