package e2e_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// wantConcurrencyLimit fails the test unless a says, as it should, that all permits are in use.
func wantConcurrencyLimit(t *testing.T, a answer) {
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

	// Orders wait in the queue of the lock while the test holds it, and can be counted there. An instance that is
	// paused for longer than its permit lasts loses the permit, and another order may get it. Such a round is not
	// judged. A round in which the store was too slow to grant any permit is not judged either.
	all := int64(0)
	for judged := false; !judged; {
		one.eventuallyPlaced(t, client, "a") // by now the permits are free again
		two.eventuallyPlaced(t, client, "a")
		stalls := detectStalls(t)
		guard := hold(t, locks, stock.LockKey("a"))
		placed := make(chan answer, 100)
		var group sync.WaitGroup
		for i := range cap(placed) { // with more time than the rest takes
			url := []string{one.url, two.url}[i%2]
			group.Go(func() { placed <- purchase(t.Context(), client, url, "a", "Prefer", "wait=30") })
		}
		most, received, odd := 0, 0, 0
		for end := time.After(25 * time.Second); received < cap(placed)-2 && most <= 2; received++ {
			select {
			case a := <-placed:
				if a.status == http.StatusTooManyRequests {
					wantConcurrencyLimit(t, a)
				} else {
					odd++
				}
			case <-end:
				most = 3
			}
			most = max(most, inspect(t, locks, guard.Key()).Waiters)
		}
		if all == 0 {
			two.want(t, http.StatusOK, "POST", paid+"/pay", `{"payment_id":"p1"}`)
			one.want(t, http.StatusOK, "POST", cancelled+"/cancel", "")
		}
		free(t, guard)
		group.Wait()
		close(placed)
		last := make(map[int]int)
		for a := range placed {
			last[a.status]++
		}
		all += int64(last[http.StatusCreated]) + 2
		judged = stalls.total() < permitsTTL/2 && last[http.StatusCreated] > 0
		if judged && (most > 2 || odd > 0 || last[http.StatusCreated]+last[http.StatusTooManyRequests] != 2) {
			t.Errorf("%d orders were on their way; the last two, by status: %v; %d others were not refused", most, last, odd)
		}
	}
	balancedBut(t, s, "a", all)
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

// returned bounds the time until the permits of a killed instance are free again: 3 s, and more on a busy machine.
const returned = time.Minute

// The permits of an instance that is killed are free again after their TTL.
func TestPermitsOfAKilledInstance(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	locks, client := s.locks(t), customers(t)
	dies := spawn(t, append(s.flags, "--instance", "dies", "--permits", "2")...)
	dies.want(t, http.StatusCreated, "PUT", "/api/v1/skus/b", `{"on_hand":9,"strategy":"conditional"}`)
	// Two orders that wait for locks, for longer than the rest takes, have all permits; of one SKU they may have one.
	for _, sku := range []string{"a", "c"} {
		dies.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":9,"strategy":"redis"}`)
		guard := hold(t, locks, stock.LockKey(sku))
		defer guard.Release(t.Context())
		go func() {
			for purchase(t.Context(), client, dies.url, sku, "Prefer", "wait=30").status == http.StatusTooManyRequests {
			}
		}()
		queued(t, locks, guard.Key(), 1)
	}
	// Only now, as all that live have a share.
	lives := start(t, append(s.flags, "--instance", "lives", "--permits", "2")...)
	testbedtest.Eventually(t, "all permits are in use", func() bool { // one that was paused takes its permits again, if nobody was faster
		a := purchase(t.Context(), client, lives.url, "b")
		if a.status != http.StatusCreated {
			wantConcurrencyLimit(t, a)
		}
		return a.status != http.StatusCreated
	})
	dies.kill()
	killed := time.Now()
	for {
		a := purchase(t.Context(), client, lives.url, "b")
		if a.status == http.StatusCreated {
			break
		}
		if !later(a.status, a.body) {
			t.Fatal(a)
		}
		if time.Since(killed) > returned {
			t.Fatal("the permits are gone")
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Logf("a permit was back %v after the kill", time.Since(killed).Round(time.Millisecond))
}
