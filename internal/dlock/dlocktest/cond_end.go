package dlocktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

func waitTimesOut(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	lease := h.lock(ctx, t, c, key)
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, h.TTL/2)
	defer cancel()
	_, err := c.A.Wait(short, lease)
	wantErr(t, err, context.DeadlineExceeded)
	if d := time.Since(start); d < h.TTL/4 || d > 3*h.TTL {
		t.Errorf("Wait returned after %v, its limit was %v", d, h.TTL/2)
	}
	wantErr(t, lease.Err(), dlock.ErrReleased)
	h.wantFree(ctx, t, key)
	s := h.sleep(ctx, t, h.New(t), key)
	h.notify(ctx, t, key) // for s, not for who has left
	release(ctx, t, h.awake(t, s))
}

func deadContextWaits(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	reason := errors.New("shutting down")
	dead, cancel := context.WithCancelCause(ctx)
	cancel(reason)
	_, err := c.A.Wait(dead, h.lock(ctx, t, c, key))
	wantErr(t, err, context.Canceled)
	wantErr(t, err, reason)
	h.wantFree(ctx, t, key)
}

func cancelledWaiterPassesOn(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	mortal, giveUp := context.WithCancel(ctx)
	first, second := h.sleep(mortal, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lease), nil)
	giveUp()
	_, err := h.end(t, first)
	wantErr(t, err, context.Canceled)
	h.asleep(ctx, t, second) // the key is held
	release(ctx, t, lease)
	release(ctx, t, h.awake(t, second))
	h.wantFree(ctx, t, key)
}

// cancelledWaiterPassesGrantOn gives up while the grant is on its way: either the
// waiter has it, or the next one has, and never nobody.
func cancelledWaiterPassesGrantOn(ctx context.Context, t testing.TB, h CondHarness, key string) {
	for range 20 {
		mortal, giveUp := context.WithCancel(ctx)
		first, second := h.sleep(mortal, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
		c := h.New(t)
		holder := h.lock(ctx, t, c, key)
		wantErr(t, c.A.Signal(ctx, holder), nil)
		var wg sync.WaitGroup
		wg.Go(giveUp)
		start := time.Now()
		release(ctx, t, holder)
		wg.Wait()
		lease, err := h.end(t, first)
		if err == nil {
			release(ctx, t, lease)
			h.notify(ctx, t, key)
		}
		release(ctx, t, h.awake(t, second))
		wantSoon(t, h.TTL, start)
	}
}

func waitOnLostLease(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	lost := h.lock(ctx, t, c, key)
	h.Expire(t, key)
	next := h.lock(ctx, t, c, key)
	_, err := c.A.Wait(ctx, lost)
	wantErr(t, err, dlock.ErrLost)
	_, err = c.TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld) // the other grant stays
	release(ctx, t, next)

	released := h.lock(ctx, t, c, key)
	release(ctx, t, released)
	_, err = c.A.Wait(ctx, released)
	wantErr(t, err, dlock.ErrReleased)

	s := h.sleep(ctx, t, h.New(t), key)
	h.notify(ctx, t, key) // nothing was queued before s
	release(ctx, t, h.awake(t, s))
}

// nestedHolderMayNotWait: one of several leases cannot give the key away, and one
// context cannot end a lease and outlive it. Neither costs the holder its lease.
func nestedHolderMayNotWait(ctx context.Context, t testing.TB, h CondHarness, key string) {
	need(t, h.Reentrant, "the backend is not reentrant")
	c := h.New(t)
	outer := h.lock(ctx, t, c, key)
	work, cancel := outer.Context(ctx)
	defer cancel()
	inner, err := c.Acquire(work, key)
	wantErr(t, err, nil)
	for _, lease := range []*dlock.Lease{outer, inner} {
		_, err = c.A.Wait(ctx, lease)
		wantErr(t, err, dlock.ErrReentry)
		wantErr(t, lease.Err(), nil)
	}
	wantErr(t, c.A.Signal(ctx, inner), nil)
	release(ctx, t, inner)
	_, err = c.A.Wait(work, outer)
	wantErr(t, err, dlock.ErrReentry)
	wantErr(t, outer.Err(), nil)
	_, err = h.New(t).TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, outer)
	h.wantFree(ctx, t, key)
}

func signalNeedsTheLock(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	s := h.sleep(ctx, t, h.New(t), key)
	lost := h.lock(ctx, t, c, key)
	h.Expire(t, key)
	next := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lost), dlock.ErrLost)
	wantErr(t, c.A.Broadcast(ctx, lost), dlock.ErrLost)
	release(ctx, t, next)
	wantErr(t, c.A.Signal(ctx, next), dlock.ErrReleased)
	wantErr(t, c.A.Broadcast(ctx, next), dlock.ErrReleased)
	h.asleep(ctx, t, s)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}
