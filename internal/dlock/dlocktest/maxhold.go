package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// limit is the MaxHold of cases: it takes some renewals to reach it.
func (h Harness) limit() time.Duration { return 3 * h.TTL / 2 }

// wantMaxHold waits for lease to end by its limit, which began to count at start at the earliest.
func (h Harness) wantMaxHold(t testing.TB, lease *dlock.Lease, start time.Time) {
	t.Helper()
	waitDone(t, lease, h.limit()+h.TTL/2)
	if d := time.Since(start); d < h.limit()-h.TTL/4 {
		t.Errorf("the lease ended after %v, want %v", d, h.limit())
	}
	lost, ok := errors.AsType[*dlock.LostError](lease.Err())
	if !ok || lost.Reason != dlock.MaxHold {
		t.Errorf("Err = %v, want the reason %q", lease.Err(), dlock.MaxHold)
	}
}

func maxHoldEndsTheLease(ctx context.Context, t testing.TB, h Harness, key string) {
	if h.Capped == nil {
		t.Skip("leases last for as long as they are renewed")
	}
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
	h.needReentrancy(t)
	if h.Capped == nil {
		t.Skip("leases last for as long as they are renewed")
	}
	start := time.Now()
	l := h.Capped(t, h.limit())
	outer, err := l.Acquire(ctx, key)
	wantErr(t, err, nil)
	inner, last := nested(ctx, t, l, outer, key), nested(ctx, t, l, outer, key)
	defer inner.Release(ctx)
	defer last.Release(ctx)
	release(ctx, t, outer)
	h.wantMaxHold(t, inner, start)
	h.wantMaxHold(t, last, start)
	release(ctx, t, acquire(ctx, t, h, l, key))
}

// rwMaxHold is maxHoldEndsTheLease for writers and readers, with a second lease of each.
func rwMaxHold(ctx context.Context, t testing.TB, h RWHarness, key string) {
	if h.Capped == nil {
		t.Skip("leases last for as long as they are renewed")
	}
	lh := Harness{TTL: h.TTL}
	eachSide(key, func(key string, write bool) {
		start := time.Now()
		l := h.Capped(t, lh.limit())
		outer, err := side(l, write).Acquire(ctx, key)
		wantErr(t, err, nil)
		if h.Reentrant {
			inner := nested(ctx, t, reader{l}, outer, key)
			defer inner.Release(ctx)
			release(ctx, t, outer)
			outer = inner
		}
		defer outer.Release(ctx)
		lh.wantMaxHold(t, outer, start)
		release(ctx, t, acquire(ctx, t, lh, l, key))
	})
}
