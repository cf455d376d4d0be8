package redlock_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The tokens grow from one majority to the next, although the servers do not agree on
// the time, nor on the last one.
func TestFenceGrowsFromMajorityToMajority(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 5)
		l, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		const ahead = 9000000000000001 // beyond the clocks
		if err := client(t, s[0].URL()).Set(t.Context(), fenceKey(key), "9000000000000001:", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		pause := func(down ...int) {
			s.thaw(t)
			for _, i := range down {
				harm(t, s[i].Pause)
			}
		}
		var last uint64
		for round, down := range [][]int{{3, 4}, {0, 1}, {0, 2}, {1, 4}, {2, 3}} {
			pause(down...)
			// Servers that were silent get one call, and vote again when it is answered.
			var lease *dlock.Lease
			testbedtest.Eventually(t, "a majority", func() (ok bool) {
				var err error
				lease, err = l.TryAcquire(t.Context(), key)
				return err == nil
			})
			if token := lease.Fence().Token; token <= last || token <= ahead {
				t.Errorf("round %d without %v: token %d follows %d", round, down, token, last)
			}
			last = lease.Fence().Token
			if err := lease.Release(t.Context()); err != nil && errors.Is(err, dlock.ErrLost) {
				t.Errorf("round %d: Release = %v", round, err)
			}
		}
		pause()
	})
}

func TestRaiseCounterLiftsLaterTokens(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := ready(t, 3)
		l, key := locker(t, s.urls(), redlock.Config{TTL: ttl}), rand.Text()
		const high = 8000000000000000
		if err := errors.Join(l.RaiseCounter(t.Context(), key, high), l.RaiseCounter(t.Context(), key, 1)); err != nil {
			t.Fatal(err)
		}
		lease := take(t, l, key)
		defer lease.Release(t.Context())
		if token := lease.Fence().Token; token <= high {
			t.Errorf("token = %d, want more than %d", token, uint64(high))
		}
		if err := l.RaiseCounter(t.Context(), key, 1<<53); err == nil {
			t.Error("RaiseCounter accepts a token that a script cannot count")
		}
	})
}
