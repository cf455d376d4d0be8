package dlocktest

import (
	"context"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func fenceIncreases(ctx context.Context, t testing.TB, h Harness, key string) {
	var last dlock.Fence
	for range 5 {
		lease := acquire(ctx, t, h, h.New(t), key)
		f := lease.Fence()
		if f.Token <= last.Token || f.Owner == "" || f.Owner == last.Owner {
			testbedtest.Final(t, "fence %+v follows %+v", f, last)
		}
		last = f
		release(ctx, t, lease)
	}
}

func fenceSurvivesWipe(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Wipe != nil, "the store cannot lose its data")
	lease := acquire(ctx, t, h, h.New(t), key)
	h.Wipe(t, key)
	next := acquire(ctx, t, h, h.New(t), key)
	if next.Fence().Token <= lease.Fence().Token {
		testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), lease.Fence())
	}
	wantErr(t, lease.Release(ctx), dlock.ErrLost)
	release(ctx, t, next)
}

// mutualExclusion protects plain memory, so that the race detector sees a violation even where the counts happen to
// come out right.
func mutualExclusion(ctx context.Context, t testing.TB, h Harness, key string) {
	const clients, goroutines, rounds = 4, 3, 4
	var (
		wg       sync.WaitGroup
		n        int
		accepted dlock.Fence
	)
	for range clients {
		l := h.New(t)
		for range goroutines {
			wg.Go(func() {
				for range rounds {
					inside(ctx, t, l, key, func(f dlock.Fence) error {
						if f == accepted || !f.Passes(accepted) {
							return dlock.ErrFenced
						}
						accepted = f
						n++
						return nil
					})
				}
			})
		}
	}
	wg.Wait()
	if want := clients * goroutines * rounds; n != want {
		t.Fatalf("n = %d, want %d", n, want)
	}
}
