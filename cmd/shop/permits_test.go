package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/stock"
)

// saturated fails the test unless a says, as it should, that all permits are in use.
func saturated(t *testing.T, a answer) {
	t.Helper()
	switch {
	case a.err != nil || !inUse(a.status, a.body):
		t.Errorf("%v, want 429", a)
	case a.header.Get("Retry-After") == "" || !strings.Contains(a.header.Get("RateLimit"), `"orders";r=0`) ||
		!strings.Contains(a.header.Get("RateLimit-Policy"), `"orders";q=2`):
		t.Errorf("a 429 with the header %v", a.header)
	}
}

// Of two instances with two permits no more than two orders are on their way at the same time,
// whatever comes in. Others are refused with all that a client needs to know, and payments and
// cancellations are not affected.
func TestTwoPermitsForTwoInstances(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	locks, client := s.locks(t), customers(t)
	one := start(t, append(s.flags, "--instance", "one", "--permits", "2")...)
	two := start(t, append(s.flags, "--instance", "two", "--permits", "2")...)
	one.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1000,"strategy":"redis"}`)
	// An instance that has just begun may have no permit yet, and its store be slow.
	paid, cancelled := one.eventuallyPlaced(t, client, "a"), two.eventuallyPlaced(t, client, "a")

	// Orders stand in the queue of the guard as long as somebody else holds it: there they can
	// be counted.
	guard := hold(t, locks, stock.LockKey("a"))
	defer guard.Release(t.Context())
	placed := make(chan answer, 100)
	var group sync.WaitGroup
	for i := range cap(placed) { // with more time than the rest takes
		url := []string{one.url, two.url}[i%2]
		group.Go(func() { placed <- purchase(t.Context(), client, url, "a", "Prefer", "wait=30") })
	}
	for range cap(placed) - 2 {
		select {
		case a := <-placed:
			saturated(t, a)
		case <-time.After(30 * time.Second):
			t.Fatal("more than two orders are on their way")
		}
		state, err := locks.Inspect(t.Context(), guard.Key())
		if err != nil || state.Waiters > 2 {
			t.Fatalf("%d orders are on their way, %v", state.Waiters, err)
		}
	}
	two.want(t, http.StatusOK, "POST", paid+"/pay", `{"payment_id":"p1"}`)
	one.want(t, http.StatusOK, "POST", cancelled+"/cancel", "")
	free(t, guard)
	group.Wait()
	last := tally([]answer{<-placed, <-placed})
	if last[http.StatusCreated] == 0 || last[http.StatusCreated]+last[http.StatusTooManyRequests] != 2 {
		t.Errorf("the last two orders, by status: %v", last)
	}
	one.eventuallyPlaced(t, client, "a") // by now the permits are back
	balancedBut(t, s, "a", int64(last[http.StatusCreated])+1)
}

// balancedBut audits a SKU of which so many units are reserved.
func balancedBut(t *testing.T, s stage, sku string, reserved int64) {
	t.Helper()
	audits, err := books(t, s.database).Audit(t.Context(), sku)
	if err != nil {
		t.Fatal(err)
	}
	if a := audits[0]; !a.OK() || a.Reserved != reserved {
		t.Errorf("the books of %s: %v, %d reserved, want %d", sku, a.Broken(), a.Reserved, reserved)
	}
}

// returned is when the permits of an instance that was killed are back at the latest: 3 s, and
// what a busy machine makes of it.
const returned = 13 * time.Second

// The permits of an instance that is killed are back after their TTL.
func TestPermitsOfAKilledInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	locks, client := s.locks(t), customers(t)
	dies := spawn(t, append(s.flags, "--instance", "dies", "--permits", "2")...)
	dies.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":9,"strategy":"redis"}`)
	dies.want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":9,"strategy":"conditional"}`)
	// Two orders that wait for a guard, for longer than the rest takes, have all permits.
	guard := hold(t, locks, stock.LockKey("a"))
	defer guard.Release(t.Context())
	for n := range 2 {
		go func() {
			for purchase(t.Context(), client, dies.url, "a", "Prefer", "wait=30").status == http.StatusTooManyRequests {
			}
		}()
		queued(t, locks, guard.Key(), n+1)
	}
	lives := start(t, append(s.flags, "--instance", "lives", "--permits", "2")...)
	saturated(t, purchase(t.Context(), client, lives.url, "b"))
	dies.kill()
	killed := time.Now()
	for {
		a := purchase(t.Context(), client, lives.url, "b")
		if a.status == http.StatusCreated {
			break
		}
		saturated(t, a)
		if time.Since(killed) > returned {
			t.Fatal("the permits are gone")
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Logf("a permit was back %v after the kill", time.Since(killed).Round(time.Millisecond))
}
