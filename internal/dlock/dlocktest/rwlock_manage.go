package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func rwInspectTells(ctx context.Context, t testing.TB, h RWHarness, key string) {
	in := optional[dlock.Inspector](t, h.New(t))
	state, err := in.Inspect(ctx, key)
	wantErr(t, err, nil)
	if state != (dlock.State{Key: key}) {
		t.Errorf("a free key: %+v", state)
	}
	eachSide(key, func(key string, write bool) {
		lease := rwTake(ctx, t, h, key, write)
		w := h.wait(ctx, t, key, "the next writer", true, 1)
		state, err := in.Inspect(ctx, key)
		wantErr(t, err, nil)
		if !state.Held || state.Fence != lease.Fence() || state.TTL <= 0 || state.TTL > h.TTL || state.Waiters != 1 {
			t.Errorf("held with %v, and one waits: %+v", lease.Fence(), state)
		}
		if age := time.Since(state.Since); write && (age < -h.TTL || age > 2*h.TTL) { // by the clock of the store
			t.Errorf("held for %v", age)
		}
		release(ctx, t, lease)
		release(ctx, t, h.in(t, w)[0])
	})
}

// rwForceRelease frees key over the head of a writer, and of two readers.
func rwForceRelease(ctx context.Context, t testing.TB, h RWHarness, key string) {
	force := optional[dlock.ForceReleaser](t, h.New(t))
	wantErr(t, force.ForceRelease(ctx, key), nil) // nobody holds it
	eachSide(key, func(key string, write bool) {
		forced := []*dlock.Lease{rwTake(ctx, t, h, key, write)}
		if !write {
			forced = append(forced, rwTake(ctx, t, h, key, false))
		}
		wantErr(t, force.ForceRelease(ctx, key), nil)
		next := tryAcquire(ctx, t, side(h.New(t), !write), key) // the fencing token is another one to readers too
		for _, lease := range forced {
			if next.Fence().Token <= lease.Fence().Token {
				testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), lease.Fence())
			}
			waitDone(t, lease, h.TTL) // by its next renewal
			wantReason(t, lease.Err(), dlock.Forced)
			wantErr(t, lease.Release(ctx), dlock.ErrLost)
		}
		wantErr(t, next.Err(), nil)
		release(ctx, t, next)
	})
}
