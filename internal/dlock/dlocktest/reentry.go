package dlocktest

import (
	"context"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// nested acquires key again in the name of its holder.
func nested(ctx context.Context, t testing.TB, l dlock.Locker, holder *dlock.Lease, key string) *dlock.Lease {
	within, cancel := holder.Context(ctx)
	t.Cleanup(cancel)
	lease, err := l.Acquire(within, key)
	if err != nil {
		t.Fatalf("nested Acquire: %v", err)
	}
	return lease
}

func reentrantIsCounted(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	l, other := h.New(t), h.New(t)
	outer := acquire(ctx, t, h, l, key)
	inner := nested(ctx, t, l, outer, key)
	within, cancel := inner.Context(ctx)
	defer cancel()
	innermost, err := l.TryAcquire(within, key)
	wantErr(t, err, nil)
	if inner.Fence() != outer.Fence() || innermost.Fence() != outer.Fence() {
		t.Errorf("fences %v, %v and %v of one holder", outer.Fence(), inner.Fence(), innermost.Fence())
	}
	for i, lease := range []*dlock.Lease{inner, outer, innermost} { // in any order
		_, err := other.TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
		release(ctx, t, lease)
		wantErr(t, lease.Err(), dlock.ErrReleased)
		if i < 2 {
			wantErr(t, innermost.Err(), nil)
		}
	}
	wantFree(ctx, t, h, key)
}

// reentrantNeedsTheContext: without the context of the lease the same client is
// another owner, and so is another client with it.
func reentrantNeedsTheContext(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	l := h.New(t)
	lease := acquire(ctx, t, h, l, key)
	_, err := l.TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)

	within, cancel := lease.Context(ctx)
	defer cancel()
	other, err := l.TryAcquire(within, key+"-other")
	wantErr(t, err, nil)
	release(ctx, t, other)

	release(ctx, t, lease)
	<-within.Done()
	_, err = l.Acquire(within, key) // the context has ended with the lease
	wantErr(t, err, context.Canceled)
	next, err := l.Acquire(context.WithoutCancel(within), key) // and is that of no holder
	wantErr(t, err, nil)
	if next.Fence() == lease.Fence() {
		t.Errorf("a lease that was released continues with fence %v", next.Fence())
	}
	release(ctx, t, next)
}

func reentrantCostsNoRoundTrip(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	need(t, h.Behind != nil, "there is no network")
	l, link := h.Behind(t)
	outer := acquire(ctx, t, h, l, key)
	link.Cut()
	start := time.Now()
	release(ctx, t, nested(ctx, t, l, outer, key))
	if d := time.Since(start); d > h.TTL/5 {
		t.Errorf("a nested acquisition took %v without a network", d)
	}
	link.Heal()
	release(ctx, t, outer)
}

func reentrantLossEndsAll(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	l := h.New(t)
	outer := acquire(ctx, t, h, l, key)
	inner := nested(ctx, t, l, outer, key)
	release(ctx, t, outer)
	h.Expire(t, key)
	waitDone(t, inner, h.TTL)
	wantErr(t, inner.Err(), dlock.ErrLost)
	wantErr(t, outer.Err(), dlock.ErrReleased)
	wantErr(t, inner.Release(ctx), dlock.ErrLost)
}

// nestedOnLostLease tries with the context of a lease that is gone, cancelled and not.
func nestedOnLostLease(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	l := h.New(t)
	lease := acquire(ctx, t, h, l, key)
	within, cancel := lease.Context(ctx)
	defer cancel()
	h.Expire(t, key)
	waitDone(t, lease, h.TTL)
	for _, ctx := range []context.Context{within, context.WithoutCancel(within)} {
		_, err := l.Acquire(ctx, key)
		wantErr(t, err, dlock.ErrLost)
		_, err = l.TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrLost)
	}
}

// reentryAfterUncertainPoll has a waiter lose the answer to a poll of its own, before it is granted the key. The
// rollback that follows the end of the lease must not follow the end of one of several leases.
func reentryAfterUncertainPoll(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.Reentrant, "a holder cannot enter again")
	need(t, h.Behind != nil, "there is no network")
	behind, link := h.Behind(t)
	waiter, rival := h.side(behind), h.New(t)
	release(ctx, t, acquire(ctx, t, h, waiter, key)) // connected
	first := acquire(ctx, t, h, rival, key)
	granted := acquiring(ctx, waiter, key)
	h.queued(ctx, t, key, 1)
	link.LoseReply()
	for end := time.Now().Add(2 * h.TTL); link.Lost() == 0; pause(ctx, h.TTL/300) {
		if time.Now().After(end) {
			release(ctx, t, first)
			if got := <-granted; got.err == nil {
				got.lease.Release(ctx)
			}
			t.Skip("a waiter asks for nothing")
		}
	}
	release(ctx, t, first)
	got := <-granted
	if got.err != nil { // then it is no case of this one
		t.Skipf("Acquire = %v", got.err)
	}
	inner := nested(ctx, t, waiter, got.lease, key)
	release(ctx, t, got.lease)
	for end := time.Now().Add(h.TTL); time.Now().Before(end); pause(ctx, h.TTL/200) {
		lease, err := rival.TryAcquire(ctx, key)
		if err == nil && inner.Err() == nil {
			testbedtest.Final(t, "granted to another while it is held by a lease of one who entered again")
		}
		if err == nil {
			release(ctx, t, lease)
			break
		}
		wantErr(t, err, dlock.ErrHeld)
	}
	wantErr(t, inner.Err(), nil)
	release(ctx, t, inner)
	wantFree(ctx, t, h, key)
}
