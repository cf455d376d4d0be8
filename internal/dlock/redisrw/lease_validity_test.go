package redisrw_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/testbed/testbedtest"
)

// Readers that wait for a writer get in when it gives up, not when they ask again.
func TestRWWriterGivesUp(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		l := patientRW(t, rdb)
		var took []time.Duration
		for range 5 {
			first := redistest.MustTake(t, l.AcquireRead, key)
			mortal, giveUp := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := l.Acquire(mortal, key); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire = %v, want the end of its context", err)
				}
			})
			testbedtest.Eventually(t, "the writer", func() bool { return redistest.RWWaiting(t, rdb, key) == 1 })
			var start, end time.Time
			wg.Go(func() {
				second := redistest.MustTake(t, l.AcquireRead, key)
				end = time.Now()
				second.Release(t.Context())
			})
			testbedtest.Eventually(t, "the reader", func() bool { return redistest.RWWaiting(t, rdb, key) == 2 })
			start = time.Now()
			giveUp()
			wg.Wait()
			took = append(took, end.Sub(start))
			first.Release(t.Context())
		}
		slices.Sort(took)
		if took[1] > 400*time.Millisecond { // polls of its own come after 800
			t.Errorf("readers got in after %v, as if nobody had notified them", took)
		}
	})
}

// The validity of a notified grant counts from a request that Redis saw before it
// granted, however late the notification is.
func TestRWValidityCountsFromBeforeTheNotification(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		url := testbedtest.Redis(t)
		admin, key := redistest.Client(t, url), rand.Text()
		rdb, link := redistest.Proxied(t, url)
		a, b, c := redistest.RW(t, redistest.Client(t, url), redisrw.Config{}), redistest.RW(t, rdb, redisrw.Config{}), redistest.RW(t, redistest.Client(t, url), redisrw.Config{})
		rounds := 0
		for range 3 {
			first := redistest.MustTake(t, a.Acquire, key)
			granted := make(chan *dlock.Lease, 1)
			go func() {
				lease, err := b.Acquire(t.Context(), key)
				if err != nil && !errors.Is(err, dlock.ErrUncertain) { // or the machine is busy
					t.Error(err)
				}
				granted <- lease
			}()
			testbedtest.Eventually(t, "the waiter", func() bool { return redistest.RWWaiting(t, admin, key) == 1 })
			link.Cut()
			if err := first.Release(t.Context()); err != nil { // the notification is on its way
				t.Fatal(err)
			}
			<-time.After(ttl / 5)
			link.Heal()
			lease := <-granted
			if lease == nil {
				continue
			}
			rounds++
			link.Cut()
			var next *dlock.Lease
			testbedtest.Eventually(t, "the key", func() bool {
				var err error
				next, err = c.TryAcquire(t.Context(), key)
				return err == nil
			})
			if lease.Err() == nil {
				t.Error("granted to another, and the holder does not know")
			}
			link.Heal()
			next.Release(t.Context())
		}
		if rounds == 0 {
			t.Error("no notification was taken: that proves nothing")
		}
	})
}
