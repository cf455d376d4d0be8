package demo

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A service that says again and again that all permits are in use is at work, and a sale at it is
// not given up; one whose lock service is away is not at work.
func TestProgressOfASale(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		want   int64 // calls for a sale of one attempt, which is refused twice
	}{
		"saturated":                {http.StatusTooManyRequests, 3},
		"the lock service is away": {http.StatusServiceUnavailable, 1},
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
				t.Errorf("%d rejected, %d errors, progress was told %d times, want %d", s.rejected, s.errors, told.Load(), c.want)
			}
		})
	}
}
