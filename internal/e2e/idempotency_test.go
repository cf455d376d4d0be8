package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// alike fails the test unless all answers are the given status, the same place and the same bytes.
func alike(t *testing.T, status int, answers []answer) {
	t.Helper()
	first := answers[0]
	for _, a := range answers {
		if a.err != nil || a.status != status || a.body != first.body || a.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("%v, Location %q, want %d as %q, %s", a, a.header.Get("Location"), status, first.header.Get("Location"), first.body)
		}
	}
}

// Twenty equal requests with one key, at three instances at once, are one order and twenty
// equal answers. So are twenty for what is sold out: twenty times the same no.
func TestOneKeyIsOneOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t)
	client := customers(t)
	for _, strategy := range []string{"conditional", "optimistic", "for-update", "redis", "redis-cohort", "lua"} {
		fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+strategy, `{"on_hand":5,"strategy":"`+strategy+`"}`)
		answers := together(20, func(i int) answer {
			return served(t.Context(), client, fleet[i%3].url, strategy, "Idempotency-Key", strategy)
		})
		alike(t, http.StatusCreated, answers)
		var first struct{ ID string }
		decode(t, answers[0].body, &first)
		if got := answers[0].header.Get("Location"); got != "/api/v1/orders/"+first.ID {
			t.Errorf("Location %q of order %s", got, first.ID)
		}
		var level struct{ Reserved int }
		if decode(t, fleet[2].want(t, http.StatusOK, "GET", "/api/v1/skus/"+strategy, ""), &level); level.Reserved != 1 {
			t.Errorf("%s: %d units are reserved", strategy, level.Reserved)
		}
		// Another payload, customer or route is another request.
		if a := served(t.Context(), client, fleet[1].url, "other", "Idempotency-Key", strategy); a.status != http.StatusUnprocessableEntity {
			t.Errorf("another payload: %v", a)
		}
		alike(t, http.StatusOK, together(6, func(i int) answer {
			return insist(func() answer {
				return ask(t.Context(), client, http.MethodPost, fleet[i%3].url+"/api/v1/orders/"+first.ID+"/pay", `{"payment_id":"p1"}`, "Idempotency-Key", strategy)
			})
		}))
	}
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/none", `{"on_hand":0,"strategy":"conditional"}`)
	alike(t, http.StatusConflict, together(20, func(i int) answer {
		return served(t.Context(), client, fleet[i%3].url, "none", "Idempotency-Key", "none")
	}))
	fleet[1].want(t, http.StatusOK, "POST", "/api/v1/skus/none/restock", `{"quantity":5}`)
	if a := served(t.Context(), client, fleet[2].url, "none", "Idempotency-Key", "none"); a.status != http.StatusConflict {
		t.Errorf("the no was forgotten: %v", a)
	}
}

// A retry of a request that waits for units places no second order. It receives the same response, at the same
// instance and at another one.
func TestDuplicateOfAWaitingOrder(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t)
	locks, client := s.locks(t), customers(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
	sold := fleet[0].place(t)

	answers := make(chan answer, 3)
	send := func(url, wait string) {
		go func() {
			answers <- served(t.Context(), client, url, "a", "Idempotency-Key", "again", "Prefer", "wait="+wait)
		}()
	}
	send(fleet[0].url, "30")
	testbedtest.Eventually(t, "the first one is first in the queue", func() bool {
		state, err := locks.Inspect(t.Context(), "line:a")
		return err == nil && state.Held
	})
	send(fleet[0].url, "30") // waits behind it, in its instance
	send(fleet[1].url, "30") // waits in the queue itself
	queued(t, locks, "line:a", 1)
	fleet[2].want(t, http.StatusOK, "POST", "/api/v1/orders/"+sold+"/cancel", "")

	var received []answer
	for range 3 {
		select {
		case a := <-answers:
			received = append(received, a)
		case <-time.After(2 * time.Minute):
			t.Fatalf("only %d were answered", len(received))
		}
	}
	alike(t, http.StatusCreated, received)
	store := books(t, s.database)
	audits, err := store.Audit(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Reserved != 1 {
		t.Errorf("the books: %v, %d reserved", a.Broken(), a.Reserved)
	}
}

// A customer who is notified that the outcome of an order is unknown places it again only if it is not there.
func TestUnknownOutcomeIsReadBeforeARetry(t *testing.T) {
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
