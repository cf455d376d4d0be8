package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A customer who is told that the outcome of an order is unknown places it again only if it is not there.
func TestCertain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		there, status int
		placed        int64
	}{
		{http.StatusOK, http.StatusCreated, 1},
		{http.StatusNotFound, http.StatusCreated, 2},
		{http.StatusForbidden, http.StatusServiceUnavailable, 1},
		{http.StatusInternalServerError, http.StatusServiceUnavailable, 1},
	} {
		var placed atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				w.WriteHeader(c.there)
			case placed.Add(1) == 1:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"type":"/docs/problems/outcome-unknown","order_id":"o1"}`)
			default:
				w.WriteHeader(http.StatusCreated)
			}
		}))
		a := certain(t.Context(), customers(t), server.URL, "a")
		if a.status != c.status || placed.Load() != c.placed {
			t.Errorf("%d when asked for: placed %d times: %v", c.there, placed.Load(), a)
		}
		server.Close()
	}
}
