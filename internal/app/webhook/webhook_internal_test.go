package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// entries is a ledger of that many messages with one entry each.
type entries int64

func (n *entries) Undelivered(context.Context, string, int) ([]stock.Entry, error) {
	if *n == 0 {
		return nil, nil
	}
	return []stock.Entry{{ID: 10 - int64(*n)}}, nil
}

func (n *entries) Delivered(context.Context, string, int64) error {
	*n--
	return nil
}

// Only failures in a row count as attempts: a receiver that refuses a message now and then never makes the timer dead while it
// confirms others.
func TestFailureAfterASuccessCountsNoAttempt(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests >= 2 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	ledger := entries(3)
	s, err := New(&ledger, server.URL, "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for i, again := range []bool{true, false} {
		outcomes, err := s.Handle(t.Context(), []timeout.Fired{{ID: "a"}})
		if err != nil || (outcomes[0] == timeout.Again(pause)) != again || ledger != 2 {
			t.Errorf("call %d: %+v, %v, %d messages are left", i+1, outcomes, err, ledger)
		}
	}
}
