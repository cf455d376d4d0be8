package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// waiter sends an order of a in the background, again while all permits are in use, and returns
// where its answer comes.
func waiter(t *testing.T, client *http.Client, url string, header ...string) <-chan answer {
	t.Helper()
	c := make(chan answer, 1)
	go func() {
		c <- served(t.Context(), client, url, "a", header...)
	}()
	return c
}

// received returns the answer, or fails the test.
func received(t *testing.T, c <-chan answer) answer {
	t.Helper()
	select {
	case a := <-c:
		return a
	case <-time.After(3 * time.Minute):
		t.Fatal("no answer")
	}
	return answer{}
}

// inLine waits until somebody is first in the queue for the SKU a and so many stand behind.
func inLine(t *testing.T, s stage, behind int) {
	t.Helper()
	locks := s.locks(t)
	testbedtest.Eventually(t, "customers are in the queue", func() bool {
		state, err := locks.Inspect(t.Context(), "line:a")
		return err == nil && state.Held && state.Waiters == behind
	})
}

// Customers who wait at one instance are served by what comes back at another: a cancellation, an
// expiry, a restock. A payment of theirs meanwhile needs no permit, and neither do they.
func TestWaitingForUnits(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t, "--permits", "1")
	client := customers(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":9,"strategy":"conditional"}`)
	sold := fleet[0].eventuallyPlaced(t, client, "a")

	first := waiter(t, client, fleet[1].url, "Prefer", "wait=30")
	inLine(t, s, 0)
	second := waiter(t, client, fleet[2].url, "Prefer", "wait=30")
	inLine(t, s, 1)
	fleet[0].eventuallyPlaced(t, client, "b") // nobody who waits has the permit
	fleet[0].want(t, http.StatusOK, "POST", sold+"/cancel", "")
	a := received(t, first)
	if a.status != http.StatusCreated || a.header.Get("Preference-Applied") != "wait=30" {
		t.Fatalf("%v, %v", a, a.header)
	}
	fleet[2].want(t, http.StatusOK, "POST", a.header.Get("Location")+"/pay", `{"payment_id":"p1"}`)
	fleet[0].want(t, http.StatusOK, "POST", "/api/v1/skus/a/restock", `{"quantity":1}`)
	if a := received(t, second); a.status != http.StatusCreated {
		t.Fatal(a)
	}
	if a := received(t, waiter(t, client, fleet[0].url, "Prefer", "wait=1")); a.status != http.StatusConflict || a.took < time.Second {
		t.Errorf("in vain: %v", a)
	}
	balancedBut(t, s, "a", 1)
}

// eventuallyPlaced places an order, in spite of others who have the permits, and returns its path.
func (r *instance) eventuallyPlaced(t *testing.T, client *http.Client, sku string) (path string) {
	t.Helper()
	testbedtest.Eventually(t, "an order of "+sku, func() bool {
		a := purchase(t.Context(), client, r.url, sku)
		path = a.header.Get("Location")
		if a.status != http.StatusCreated && !later(a.status, a.body) {
			t.Fatal(a)
		}
		return a.status == http.StatusCreated
	})
	return path
}

// An instance that is asked to stop sends those who wait away at once, and with an answer. It
// does the same with those who have just come, and those who wait for a lock.
func TestWaitingOrderIsRefusedAtShutdown(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	stops := spawn(t, append(s.flags, "--instance", "stops")...)
	other := start(t, append(s.flags, "--instance", "other")...)
	client := customers(t)
	other.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":0,"strategy":"conditional"}`)
	other.want(t, http.StatusCreated, "PUT", "/api/v1/skus/guarded", `{"on_hand":9,"strategy":"redis"}`)
	var waiting []<-chan answer
	for i := range 5 {
		waiting = append(waiting, waiter(t, client, stops.url, "Prefer", "wait=30"))
		inLine(t, s, i)
	}
	locks := s.locks(t)
	guard := hold(t, locks, stock.LockKey("guarded"))
	atGuard := make(chan answer, 1)
	go func() {
		atGuard <- permitted(func() answer { return purchase(t.Context(), client, stops.url, "guarded", "Prefer", "wait=30") })
	}()
	queued(t, locks, guard.Key(), 1)
	stalls, began := detectStalls(t), time.Now()
	stops.stop()
	draining := func(a answer) {
		t.Helper()
		if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "draining") || a.header.Get("Retry-After") == "" {
			t.Error(a)
		}
	}
	for _, c := range waiting {
		draining(received(t, c))
	}
	if d := time.Since(began) - stalls.total(); d > 10*time.Second {
		t.Errorf("they were notified after %v", d)
	}
	// The one at the lock had the time of a request; then it is notified, too, and is not cut off.
	if a := received(t, atGuard); a.status != http.StatusServiceUnavailable && stalls.total() == 0 {
		t.Errorf("at the lock: %v", a)
	}
	stops.stopped(t)
	free(t, guard)
	balancedBut(t, s, "guarded", 0)
	testbedtest.Eventually(t, "nobody waits", func() bool {
		state, err := locks.Inspect(t.Context(), "line:a")
		return err == nil && !state.Held && state.Waiters == 0
	})
}

// status returns how an order reads.
func (r *instance) status(t *testing.T, path string) (status, reason string) {
	t.Helper()
	var o struct{ Status, Reason string }
	if err := json.Unmarshal([]byte(r.want(t, http.StatusOK, "GET", path, "")), &o); err != nil {
		t.Fatal(err)
	}
	return o.Status, o.Reason
}

// Another client holds the lock. An order that does not wait is refused at once. A queued order is placed when the
// lock is free, at whichever instance it was queued and read.
func TestQueuedOrders(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fleet := s.three(t)
	client := customers(t)
	locks := s.locks(t)
	fleet[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":2,"strategy":"redis"}`)
	guard := hold(t, locks, stock.LockKey("a"))
	impatient := permitted(func() answer { return purchase(t.Context(), client, fleet[1].url, "a", "Prefer", "wait=0") })
	if a := impatient; a.status != http.StatusServiceUnavailable ||
		!strings.Contains(a.body, "lock-timeout") || a.header.Get("Retry-After") == "" || a.header.Get("Preference-Applied") != "wait=0" {
		t.Errorf("%v, %v", a, a.header)
	}
	var paths []string
	for i := range 4 {
		a := served(t.Context(), client, fleet[i%3].url, "a", "Prefer", "respond-async")
		if a.status != http.StatusAccepted || a.header.Get("Preference-Applied") != "respond-async" {
			t.Fatalf("%v, %v", a, a.header)
		}
		path := a.header.Get("Location")
		if status, _ := fleet[(i+1)%3].status(t, path); status != "QUEUED" {
			t.Errorf("the order is %s", status)
		}
		paths = append(paths, path)
	}
	fleet[2].want(t, http.StatusOK, "POST", paths[0]+"/cancel", "")
	balancedBut(t, s, "a", 0) // what is queued has nothing
	pay := func(path string) answer {
		return insist(func() answer {
			return ask(t.Context(), client, "POST", fleet[0].url+path+"/pay", `{"payment_id":"p1"}`, "Idempotency-Key", "pay-"+path[len(path)-36:])
		})
	}
	for _, path := range paths[1:] {
		if a := pay(path); a.status != http.StatusConflict || !strings.Contains(a.body, "QUEUED") {
			t.Errorf("paid before it was placed: %v", a)
		}
	}
	free(t, guard)
	counts := make(map[string]int)
	for i, path := range paths {
		testbedtest.Eventually(t, path+" leaves the queue", func() bool {
			status, reason := fleet[i%3].status(t, path)
			if status != "QUEUED" {
				counts[strings.TrimSpace(status+" "+reason)]++
			}
			return status != "QUEUED"
		})
	}
	if counts["CANCELLED"] != 1 || counts["PENDING"] != 2 || counts["REJECTED out-of-stock"] != 1 {
		t.Errorf("the orders end as %v", counts)
	}
	balancedBut(t, s, "a", 2)
	paid := 0
	for _, path := range paths[1:] {
		if a := pay(path); a.status == http.StatusOK { // that it was too early was no answer for good
			paid++
		}
	}
	if paid != 2 {
		t.Errorf("%d of 2 orders could be paid with the key that had come too early", paid)
	}
	balancedBut(t, s, "a", 0)
}
