package redislock_test

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Each of 32 clients that take a key again and again gets it as often as the others. The test needs an idle machine:
// a client that gets no processor for a whole turn loses that turn.
func TestFairnessOfContendingClients(t *testing.T) {
	testbedtest.FullSize(t)
	testbedtest.Steady(t, func(t testing.TB) {
		const clients, turns, hold = 32, 100, time.Millisecond
		var (
			wg      sync.WaitGroup
			granted atomic.Int64
			url     = testbedtest.Redis(t)
			key     = rand.Text()
			shares  = make([]int, clients) // each of its client
		)
		for i := range clients {
			l := locker(t, redistest.Client(t, url))
			wg.Go(func() {
				for granted.Add(1) <= clients*turns {
					err := dlock.Do(t.Context(), l, key, func(context.Context, dlock.Fence) error {
						shares[i]++
						<-time.After(hold)
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if least, most := slices.Min(shares), slices.Max(shares); 10*most > 11*least {
			t.Errorf("the clients got between %d and %d grants: %v", least, most, shares)
		}
	})
}
