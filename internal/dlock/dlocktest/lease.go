package dlocktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func tryAcquireHeld(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b := h.New(t), h.New(t)
	lease := tryAcquire(ctx, t, a, key)
	for _, l := range []dlock.Locker{a, b} { // the same client is another owner too
		_, err := l.TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
	}
	if lease.Key() != key {
		t.Errorf("Key = %q, want %q", lease.Key(), key)
	}
	wantErr(t, lease.Err(), nil)
	release(ctx, t, lease)
}

func releaseFrees(ctx context.Context, t testing.TB, h Harness, key string) {
	l := h.side(h.New(t))
	for range 3 {
		lease := acquire(ctx, t, h, l, key)
		release(ctx, t, lease)
		wantErr(t, lease.Release(ctx), dlock.ErrReleased)
		wantFree(ctx, t, h, key)
	}
}

func releaseTwice(ctx context.Context, t testing.TB, h Harness, key string) {
	lease := acquire(ctx, t, h, h.New(t), key)
	release(ctx, t, lease)
	wantErr(t, lease.Release(ctx), dlock.ErrReleased)
	wantErr(t, lease.Err(), dlock.ErrReleased)

	releaseAtOnce(ctx, t, acquire(ctx, t, h, h.New(t), key))
}

// releaseAtOnce has several callers release lease at once. One of them does.
func releaseAtOnce(ctx context.Context, t testing.TB, lease *dlock.Lease) {
	t.Helper()
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = lease.Release(ctx) })
	}
	wg.Wait()
	if n := len(errs) - len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })); n > 1 {
		testbedtest.Final(t, "%d of 4 concurrent releases succeeded", n)
	} else if n == 0 {
		t.Error("none of 4 concurrent releases succeeded")
	}
}

func acquireWaits(ctx context.Context, t testing.TB, h Harness, key string) {
	lease := acquire(ctx, t, h, h.New(t), key)
	release(ctx, t, wantWait(ctx, t, lease, h.TTL/2, func() *dlock.Lease { return acquire(ctx, t, h, h.New(t), key) }))
}

func acquireInOrder(ctx context.Context, t testing.TB, h Harness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	first := acquire(ctx, t, h, h.New(t), key)
	inOrder(ctx, t, 5, first, func() dlock.Locker { return h.New(t) }, h.queued)
}

// inOrder has waiters write their numbers down, under the key of first.
func inOrder(ctx context.Context, t testing.TB, waiters int, first *dlock.Lease, open func() dlock.Locker, queued func(context.Context, testing.TB, string, int)) {
	t.Helper()
	var (
		wg    sync.WaitGroup
		order []int // guarded by the lock under test
		key   = first.Key()
	)
	for i := range waiters {
		l := open()
		wg.Go(func() {
			inside(ctx, t, l, key, func(dlock.Fence) error {
				order = append(order, i)
				return nil
			})
		})
		queued(ctx, t, key, i+1)
	}
	release(ctx, t, first)
	wg.Wait()
	if len(order) != waiters || !slices.IsSorted(order) {
		t.Fatalf("granted in the order %v", order)
	}
}

func acquireCancelled(ctx context.Context, t testing.TB, h Harness, key string) {
	for range 10 { // on a busy machine a request is often in flight when the context ends, above all of a waiter that spins
		if cancelled(ctx, t, h, key) {
			return
		}
	}
	t.Error("whether a cancelled waiter has the key is never known")
}

// cancelled has two waiters give up, and reports whether it was known that they had nothing.
func cancelled(ctx context.Context, t testing.TB, h Harness, key string) (known bool) {
	lease := acquire(ctx, t, h, h.New(t), key)

	short, cancel := context.WithTimeout(ctx, h.TTL/2)
	defer cancel()
	_, late := h.side(h.New(t)).Acquire(short, key)
	wantErr(t, late, context.DeadlineExceeded)

	reason := errors.New("shutting down")
	caused, end := context.WithCancelCause(ctx)
	time.AfterFunc(h.TTL/2, func() { end(reason) })
	_, err := h.side(h.New(t)).Acquire(caused, key)
	wantErr(t, err, context.Canceled)
	wantErr(t, err, reason)

	release(ctx, t, lease)
	if errors.Is(late, dlock.ErrUncertain) || errors.Is(err, dlock.ErrUncertain) {
		release(ctx, t, acquire(ctx, t, h, h.New(t), key)) // it is released in the background
		return false
	}
	wantFree(ctx, t, h, key)
	return true
}

func deadContextAcquires(ctx context.Context, t testing.TB, h Harness, key string) {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	l := h.side(h.New(t))
	_, err := l.Acquire(dead, key)
	wantErr(t, err, context.Canceled)
	_, err = l.TryAcquire(dead, key)
	wantErr(t, err, context.Canceled)
	wantFree(ctx, t, h, key)
}

func deadContextReleases(ctx context.Context, t testing.TB, h Harness, key string) {
	dead, cancel := context.WithCancel(ctx)
	lease := acquire(dead, t, h, h.side(h.New(t)), key)
	cancel()
	wantErr(t, lease.Err(), nil) // the lease outlives the context it was acquired with
	release(dead, t, lease)
	wantFree(ctx, t, h, key)
}

func keysAreIndependent(ctx context.Context, t testing.TB, h Harness, key string) {
	a, b := h.New(t), h.New(t)
	one, two := tryAcquire(ctx, t, h.side(a), key+"-1"), tryAcquire(ctx, t, h.side(b), key+"-2")
	release(ctx, t, one)
	_, err := a.TryAcquire(ctx, key+"-2")
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, two)
}

func keepsAlive(ctx context.Context, t testing.TB, h Harness, key string) {
	lease, other := acquire(ctx, t, h, h.New(t), key), h.New(t)
	for start := time.Now(); time.Since(start) < 3*h.TTL; {
		_, err := other.TryAcquire(ctx, key)
		wantErr(t, err, dlock.ErrHeld)
		wantErr(t, lease.Err(), nil)
		pause(ctx, h.TTL/10)
	}
	release(ctx, t, lease)
}

func lossIsReported(ctx context.Context, t testing.TB, h Harness, key string) {
	lease := acquire(ctx, t, h, h.side(h.New(t)), key)
	wantLossReported(ctx, t, h.TTL, func() { h.Expire(t, key) }, lease)
	release(ctx, t, acquire(ctx, t, h, h.New(t), key))
}

// wantLossReported has the grants of leases expire, and checks that all learn of it.
func wantLossReported(ctx context.Context, t testing.TB, ttl time.Duration, expire func(), leases ...*dlock.Lease) {
	t.Helper()
	work, cancel := leases[0].Context(ctx)
	defer cancel()
	expire()
	for _, lease := range leases {
		waitDone(t, lease, 5*ttl/6) // by a renewal, not only by the end of the validity window
		wantErr(t, lease.Err(), dlock.ErrLost)
		wantErr(t, lease.Release(ctx), dlock.ErrLost)
	}
	within(t, work.Done(), ttl, "the context of the lease continues")
	wantErr(t, context.Cause(work), dlock.ErrLost)
}

func lossHasAReason(ctx context.Context, t testing.TB, h Harness, key string) {
	lease := acquire(ctx, t, h, h.New(t), key)
	h.Expire(t, key)
	second := acquire(ctx, t, h, h.New(t), key)
	waitDone(t, lease, h.TTL)
	lost, ok := errors.AsType[*dlock.LostError](lease.Err())
	if !ok {
		t.Fatalf("Err = %v, want a LostError", lease.Err())
	}
	if lost.Key != key || lost.Fence != lease.Fence() || lost.Reason == "" {
		t.Errorf("loss = %+v, want key %q, fence %v and a reason", lost, key, lease.Fence())
	}
	release(ctx, t, second)
}

func lateRelease(ctx context.Context, t testing.TB, h Harness, key string) {
	late := acquire(ctx, t, h, h.New(t), key)
	h.Expire(t, key)
	holder := acquire(ctx, t, h, h.New(t), key)
	wantErr(t, late.Release(ctx), dlock.ErrLost)
	_, err := h.New(t).TryAcquire(ctx, key)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, holder)
}

func lateRenewal(ctx context.Context, t testing.TB, h Harness, key string) {
	late := acquire(ctx, t, h, h.New(t), key)
	h.Expire(t, key)
	waitDone(t, late, h.TTL) // it has tried to renew, and found nothing
	wantFree(ctx, t, h, key)
}

// pause lets d pass. It paces a case and decides nothing.
func pause(ctx context.Context, d time.Duration) {
	backoff.Sleep(ctx, d)
}
