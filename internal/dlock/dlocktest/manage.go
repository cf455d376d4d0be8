package dlocktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// all acquires keys for the test.
func all(ctx context.Context, t testing.TB, h Harness, l dlock.Locker, keys ...string) *dlock.Lease {
	ctx, cancel := context.WithTimeout(ctx, 10*h.TTL)
	defer cancel()
	lease, err := optional[dlock.MultiLocker](t, l).AcquireAll(ctx, keys)
	if err != nil {
		t.Fatalf("AcquireAll: %v", err)
	}
	t.Cleanup(func() { lease.Release(t.Context()) })
	return lease
}

func acquireAllOrNone(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b, c := key+"-a", key+"-b", key+"-c"
	l := h.New(t)
	lease := all(ctx, t, h, l, c, a, b, a)
	if got := lease.Keys(); !slices.Equal(got, []string{a, b, c}) {
		t.Errorf("Keys = %q, want each once and in order", got)
	}
	for _, key := range lease.Keys() {
		if f := lease.FenceOf(key); f.Token == 0 || f.Owner == "" {
			t.Errorf("fence of %q = %v", key, f)
		}
		_, err := h.New(t).TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
	}
	if f := lease.FenceOf("other"); f != (dlock.Fence{}) {
		t.Errorf("fence of a key that is not held = %v", f)
	}
	release(ctx, t, lease)

	holder := acquire(ctx, t, h, h.New(t), b)
	short, cancel := context.WithTimeout(ctx, h.TTL/2)
	defer cancel()
	_, err := optional[dlock.MultiLocker](t, l).AcquireAll(short, []string{c, b, a})
	wantErr(t, err, context.DeadlineExceeded)
	wantFree(ctx, t, h, a)
	wantFree(ctx, t, h, c)
	wantErr(t, holder.Err(), nil)
	time.AfterFunc(h.TTL/4, func() { holder.Release(ctx) })
	release(ctx, t, all(ctx, t, h, l, a, b, c))
}

// acquireAllNeverDeadlocks has callers name the same keys in every order.
func acquireAllNeverDeadlocks(ctx context.Context, t testing.TB, h Harness, key string) {
	keys := []string{key + "-1", key + "-2", key + "-3"}
	optional[dlock.MultiLocker](t, h.New(t))
	var wg sync.WaitGroup
	for i := range 6 {
		l := optional[dlock.MultiLocker](t, h.New(t))
		order := []string{keys[i%3], keys[(i+1+i/3)%3]}
		wg.Go(func() {
			for range 5 {
				lease, err := l.AcquireAll(ctx, order)
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func acquireAllLoses(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b := key+"-a", key+"-b"
	lease := all(ctx, t, h, h.New(t), a, b)
	h.Expire(t, b)
	waitDone(t, lease, h.TTL)
	wantErr(t, lease.Err(), dlock.ErrLost)
	if lost, ok := errors.AsType[*dlock.LostError](lease.Err()); ok && (lost.Key != b || lost.Fence != lease.FenceOf(b)) {
		t.Errorf("loss = %v, want that of %q", lost, b)
	}
	wantErr(t, lease.Release(ctx), dlock.ErrLost)
	release(ctx, t, acquire(ctx, t, h, h.New(t), a)) // nobody keeps the rest alive
}

func acquireAllIsReentrant(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	a, b := key+"-a", key+"-b"
	l := h.New(t)
	outer := all(ctx, t, h, l, a, b)
	inner := nested(ctx, t, l, outer, b)
	if inner.Key() != b || inner.Fence() != outer.FenceOf(b) {
		t.Errorf("lease of %q with fence %v, want %q with %v", inner.Key(), inner.Fence(), b, outer.FenceOf(b))
	}
	within, cancel := outer.Context(ctx)
	defer cancel()
	_, err := optional[dlock.MultiLocker](t, l).AcquireAll(within, []string{b, key + "-c"})
	wantErr(t, err, dlock.ErrReentry)
	release(ctx, t, outer)
	_, err = h.New(t).TryAcquire(ctx, a)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, inner)
	wantFree(ctx, t, h, a)
}

func inspectTells(ctx context.Context, t testing.TB, h Harness, key string) {
	in := optional[dlock.Inspector](t, h.New(t))
	state, err := in.Inspect(ctx, key)
	wantErr(t, err, nil)
	if state != (dlock.State{Key: key}) {
		t.Errorf("a free key: %+v", state)
	}
	lease := acquire(ctx, t, h, h.New(t), key)
	state, err = in.Inspect(ctx, key)
	wantErr(t, err, nil)
	if !state.Held || state.Fence != lease.Fence() || state.TTL <= 0 || state.TTL > h.TTL {
		t.Errorf("held with %v: %+v", lease.Fence(), state)
	}
	if age := time.Since(state.Since); age < -h.TTL || age > 2*h.TTL { // by the clock of the store
		t.Errorf("held for %v", age)
	}
	release(ctx, t, lease)
}

// forceReleaseIsTold frees key over the head of its holder.
func forceReleaseIsTold(ctx context.Context, t testing.TB, h Harness, key string) {
	force := optional[dlock.ForceReleaser](t, h.New(t))
	wantErr(t, force.ForceRelease(ctx, key), nil) // nobody holds it
	lease := acquire(ctx, t, h, h.New(t), key)
	work, cancel := lease.Context(ctx)
	defer cancel()
	wantErr(t, force.ForceRelease(ctx, key), nil)
	next := acquire(ctx, t, h, h.New(t), key)
	if next.Fence().Token <= lease.Fence().Token {
		testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), lease.Fence())
	}
	within(t, work.Done(), h.TTL, "the holder is not notified") // by a renewal: the end of its validity has another reason
	wantReason(t, context.Cause(work), dlock.Forced)
	wantErr(t, lease.Release(ctx), dlock.ErrLost)
	wantErr(t, next.Err(), nil)
	release(ctx, t, next)
}

func forceReleaseHandsOn(ctx context.Context, t testing.TB, h Harness, key string) {
	force := optional[dlock.ForceReleaser](t, h.New(t))
	stuck := acquire(ctx, t, h, h.New(t), key)
	forced := make(chan error, 1)
	time.AfterFunc(h.TTL/4, func() { forced <- force.ForceRelease(ctx, key) })
	start := time.Now()
	release(ctx, t, acquire(ctx, t, h, h.New(t), key))
	if d := time.Since(start); d > 3*h.TTL/4 {
		t.Errorf("the waiter got the key after %v", d)
	}
	wantErr(t, <-forced, nil)
	waitDone(t, stuck, h.TTL)
}

// limit is the MaxHold of cases: it takes some renewals to reach it.
func (h Harness) limit() time.Duration { return 3 * h.TTL / 2 }

// wantMaxHold waits for lease to end by its limit, which began to count at start at the earliest.
func (h Harness) wantMaxHold(t testing.TB, lease *dlock.Lease, start time.Time) {
	t.Helper()
	waitDone(t, lease, h.limit()+h.TTL/2)
	if d := time.Since(start); d < h.limit()-h.TTL/4 {
		t.Errorf("the lease ended after %v, want %v", d, h.limit())
	}
	wantReason(t, lease.Err(), dlock.MaxHold)
}

func maxHoldEndsTheLease(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Capped != nil, "leases last for as long as they are renewed")
	start := time.Now()
	l := h.Capped(t, h.limit())
	lease, err := l.Acquire(ctx, key)
	wantErr(t, err, nil)
	defer lease.Release(ctx)
	h.wantMaxHold(t, lease, start)
	release(ctx, t, acquire(ctx, t, h, l, key)) // the store is not notified, and forgets
}

// maxHoldEndsAllLeases: the limit is that of the grant, however many leases share it, and
// whichever of them ends first.
func maxHoldEndsAllLeases(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	need(t, h.Capped != nil, "leases last for as long as they are renewed")
	start := time.Now()
	writer := h.Capped(t, h.limit())
	l := h.side(writer)
	outer, err := l.Acquire(ctx, key)
	wantErr(t, err, nil)
	inner, last := nested(ctx, t, l, outer, key), nested(ctx, t, l, outer, key)
	defer inner.Release(ctx)
	defer last.Release(ctx)
	release(ctx, t, outer)
	h.wantMaxHold(t, inner, start)
	h.wantMaxHold(t, last, start)
	release(ctx, t, acquire(ctx, t, h, writer, key)) // the store is not notified, and forgets
}
