package buyers_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/show/buyers"
)

// A SKU is on sale, though the service was too busy to say so at once.
func TestSKUIsCreatedAgain(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusOK, http.StatusOK}[asked.Add(1)-1])
	}))
	defer server.Close()
	s := buyers.New([]string{server.URL}, 1)
	if err := s.Stock(t.Context(), "a", "naive", 1); err != nil {
		t.Error(err)
	}
	if err := s.Stock(t.Context(), "a", "naive", 1); err == nil {
		t.Error("a SKU that is there already passes for a new one")
	}
}

func TestOrdersWaitForUnits(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{0: "", 7 * time.Second: "wait=7"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Prefer"); got != want {
				t.Errorf("Prefer: %q, want %q", got, want)
			}
			w.WriteHeader(http.StatusConflict)
		}))
		defer server.Close()
		shop := buyers.New([]string{server.URL}, 1)
		shop.Wait = wait
		if s := shop.Sell(t.Context(), "a", 1, func(buyers.Outcome, int, time.Duration) {}); s.Rejected != 1 {
			t.Errorf("%+v", s)
		}
	}
}
