package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func semReleaseTwice(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	lease := h.take(ctx, t, h.New(t, 2), key, 1)
	release(ctx, t, lease)
	wantErr(t, lease.Release(ctx), dlock.ErrReleased)
	wantErr(t, lease.Err(), dlock.ErrReleased)

	releaseAtOnce(ctx, t, h.take(ctx, t, h.New(t, 2), key, 1))
	h.wantFreePermits(ctx, t, h.New(t, 2), key, 2)
}

// semReleaseNeverMore has a holder release what it has lost, which others hold by now.
func semReleaseNeverMore(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s, late := h.New(t, 3), h.take(ctx, t, h.New(t, 3), key, 2)
	h.Expire(t, key)
	one, two := h.take(ctx, t, s, key, 2), h.take(ctx, t, h.New(t, 3), key, 1)
	wantErr(t, late.Release(ctx), dlock.ErrLost)
	_, err := s.TryAcquire(ctx, key, 1)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, one)
	release(ctx, t, two)
	h.wantFreePermits(ctx, t, s, key, 3)
}

func semKeepsAlive(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	holder := h.New(t, 3)
	one, two := h.take(ctx, t, holder, key, 1), h.take(ctx, t, holder, key, 2)
	other := h.New(t, 3)
	for start := time.Now(); time.Since(start) < 3*h.TTL; {
		_, err := other.TryAcquire(ctx, key, 1)
		wantErr(t, err, dlock.ErrHeld)
		wantErr(t, one.Err(), nil)
		wantErr(t, two.Err(), nil)
		pause(ctx, h.TTL/10)
	}
	release(ctx, t, one)
	release(ctx, t, two)
	h.wantFreePermits(ctx, t, other, key, 3)
}

func semLossIsReported(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 3)
	wantLossReported(ctx, t, h.TTL, func() { h.Expire(t, key) }, h.take(ctx, t, s, key, 1), h.take(ctx, t, s, key, 2))
	h.wantFreePermits(ctx, t, s, key, 3)
}

// semDeadHolder drops the holders while somebody waits: nobody releases, and the
// waiter must notice.
func semDeadHolder(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	h.take(ctx, t, h.New(t, 2), key, 1)
	h.take(ctx, t, h.New(t, 2), key, 1)
	next := h.New(t, 2)
	got := h.waiting(ctx, t, next, key, 2, 1)
	wantWaiting(t, got)
	h.Expire(t, key)
	start := time.Now()
	r := <-got
	wantErr(t, r.err, nil)
	if d := time.Since(start); d > 2*h.TTL {
		t.Errorf("the permits of dead holders were granted %v later, the TTL is %v", d, h.TTL)
	}
	release(ctx, t, r.lease)
	h.wantFreePermits(ctx, t, next, key, 2)
}

func semFenceIncreases(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Ordered, "the backend does not order grants")
	var last dlock.Fence
	check := func(lease *dlock.Lease) {
		f := lease.Fence()
		if f.Token <= last.Token || f.Owner == "" || f.Owner == last.Owner {
			testbedtest.Final(t, "fence %+v follows %+v", f, last)
		}
		last = f
	}
	a, b := h.New(t, 2), h.New(t, 2)
	for range 3 {
		one := h.take(ctx, t, a, key, 1)
		check(one)
		two := h.take(ctx, t, b, key, 1) // alongside the other
		check(two)
		got := h.waiting(ctx, t, a, key, 2, 1) // handed off
		release(ctx, t, two)
		release(ctx, t, one)
		r := <-got
		wantErr(t, r.err, nil)
		check(r.lease)
		release(ctx, t, r.lease)
	}
}
