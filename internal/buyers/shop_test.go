package buyers_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/buyers"
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
