package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// causeLeavesNoSleeper cancels waiters for reasons that look like an outcome: none is left to take a signal.
func causeLeavesNoSleeper(ctx context.Context, t testing.TB, h CondHarness, key string) {
	for _, cause := range (Harness{}).causes() {
		caused, end := context.WithCancelCause(ctx)
		first, second := h.sleep(caused, t, h.New(t), key), h.sleep(ctx, t, h.New(t), key)
		end(cause)
		_, err := h.end(t, first)
		wantErr(t, err, context.Canceled)
		wantErr(t, err, cause)
		h.notify(ctx, t, key) // for the second one
		release(ctx, t, h.awake(t, second))
	}
	h.wantFree(ctx, t, key)
}

// closeEndsWait closes a client that has a woken lease and a waiter. The lease is lost and the wait ends. Another
// waiter gets the signal and the key.
func closeEndsWait(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	end := optional[closer](t, c.Locker)
	s := h.sleep(ctx, t, c, key+"-woken")
	h.notify(ctx, t, key+"-woken")
	woken := h.awake(t, s)
	waiting, other := h.sleep(ctx, t, c, key), h.sleep(ctx, t, h.New(t), key)
	wantErr(t, end.Close(ctx), nil)
	lost, ok := errors.AsType[*dlock.LostError](woken.Err())
	if !ok || lost.Reason != dlock.Closed {
		t.Errorf("a woken lease after Close: Err = %v, want the reason %q", woken.Err(), dlock.Closed)
	}
	next := h.New(t)
	release(ctx, t, h.lock(ctx, t, next, key+"-woken"))
	lease := h.lock(ctx, t, next, key)
	wantErr(t, next.A.Broadcast(ctx, lease), nil)
	release(ctx, t, lease)
	release(ctx, t, h.awake(t, other))
	if lease, err := h.end(t, waiting); err == nil {
		wantErr(t, lease.Err(), dlock.ErrLost)
	}
	release(ctx, t, h.lock(ctx, t, next, key))
}

// blockingOnEndOfWoken has a callback of a woken lease that does not return. The client has other waiters.
func blockingOnEndOfWoken(ctx context.Context, t testing.TB, h CondHarness, key string) {
	c := h.New(t)
	s := h.sleep(ctx, t, c, key+"-lost")
	h.notify(ctx, t, key+"-lost")
	called, blocked := make(chan struct{}), make(chan struct{})
	defer close(blocked)
	h.awake(t, s).OnEnd(func(error) {
		close(called)
		<-blocked
	})
	h.Expire(t, key+"-lost")
	select {
	case <-called:
	case <-time.After(2 * h.TTL):
		t.Fatal("OnEnd is not called")
	}
	s = h.sleep(ctx, t, c, key)
	h.notify(ctx, t, key)
	release(ctx, t, h.awake(t, s))
}
