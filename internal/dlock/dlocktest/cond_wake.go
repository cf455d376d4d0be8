package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func waitReleases(ctx context.Context, t testing.TB, h CondHarness, key string) {
	start := time.Now()
	s := h.sleep(ctx, t, h.New(t), key) // returns only when the key was free
	if d := time.Since(start); d > h.TTL/2 {
		t.Errorf("the key was free only after %v, as if it had expired", d)
	}
	h.wantFree(ctx, t, key)
	h.asleep(ctx, t, s)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}

func signalWakesOne(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	first, second := h.sleep(ctx, t, h.New(t), key), h.sleep(ctx, t, c, key)
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lease), nil)
	h.asleep(ctx, t, first, second) // the key is held
	release(ctx, t, lease)
	lease = h.awake(t, first)
	_, err := c.TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, lease)
	h.asleep(ctx, t, second)
	h.wantFree(ctx, t, key)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, second))
}

func broadcastWakesAll(ctx context.Context, t testing.TB, h CondHarness, key string) {
	const waiters = 10
	c, sleepers := h.New(t), make([]*sleeper, waiters)
	for i := range sleepers {
		sleepers[i] = h.sleep(ctx, t, h.New(t), key)
	}
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Broadcast(ctx, lease), nil)
	h.asleep(ctx, t, sleepers...)
	release(ctx, t, lease)
	for i, s := range sleepers {
		lease := h.awake(t, s)
		if i == 0 {
			h.asleep(ctx, t, sleepers[1:]...) // one after the other
		}
		release(ctx, t, lease)
	}
	h.wantFree(ctx, t, key)
}

func signalWithoutWaiters(ctx context.Context, t testing.TB, h CondHarness, key string) {
	h.notify(ctx, t, key)
	s := h.sleep(ctx, t, h.New(t), key)
	h.asleep(ctx, t, s)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}

func signalsInOrder(ctx context.Context, t testing.TB, h CondHarness, key string) {
	const waiters = 4
	sleepers := make([]*sleeper, waiters)
	for i := range sleepers {
		sleepers[i] = h.sleep(ctx, t, h.New(t), key)
	}
	for i, s := range sleepers {
		h.notify(ctx, t, key)
		release(ctx, t, h.awake(t, s))
		h.asleep(ctx, t, sleepers[i+1:]...)
	}
}

// signalOutlivesItsSender has the sender die before it releases.
func signalOutlivesItsSender(ctx context.Context, t testing.TB, h CondHarness, key string) {
	s, c := h.sleep(ctx, t, h.New(t), key), h.New(t)
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.A.Signal(ctx, lease), nil)
	h.Expire(t, key)
	release(ctx, t, h.awake(t, s))
	waitDone(t, lease, h.TTL)
}

func conditionsAreIndependent(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	s, other := h.sleep(ctx, t, c, key), h.sleep(ctx, t, c, key+"-2")
	lease := h.lock(ctx, t, c, key)
	wantErr(t, c.B.Signal(ctx, lease), nil)
	wantErr(t, c.B.Broadcast(ctx, lease), nil)
	release(ctx, t, lease)
	h.asleep(ctx, t, s, other)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
	h.asleep(ctx, t, other)
	h.notify(ctx, t, key+"-2")
	release(ctx, t, h.awake(t, other))
}

func newLeaseNewFence(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	held := h.lock(ctx, t, c, key)
	s := startSleeper(ctx, c, held)
	between := h.lock(ctx, t, h.New(t), key)
	wantErr(t, held.Err(), dlock.ErrReleased)
	wantErr(t, held.Release(ctx), dlock.ErrReleased)
	wantErr(t, h.New(t).A.Signal(ctx, between), nil) // another client of the store, the same lease
	release(ctx, t, between)
	lease := h.awake(t, s)
	if lease == held || lease.Key() != key {
		t.Errorf("woken with the lease of %q, the same: %v", lease.Key(), lease == held)
	}
	for _, earlier := range []dlock.Fence{held.Fence(), between.Fence()} {
		if f := lease.Fence(); f.Token <= earlier.Token || f.Owner == earlier.Owner {
			testbedtest.Final(t, "woken with the fence %+v after %+v", f, earlier)
		}
	}
	release(ctx, t, lease)
}
