package dlocktest

import (
	"context"
	"testing"

	"example.com/shop/internal/dlock"
)

// nestedReader reads again while a writer waits for its first lease, and is
// refused when it would have to wait for itself.
func nestedReader(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.Reentrant, "the backend is not reentrant")
	l := h.New(t)
	outer := tryAcquire(ctx, t, reader{l}, key)
	work, cancel := outer.Context(ctx)
	defer cancel()
	w := h.wait(ctx, t, key, "the writer", true, 1)
	for _, again := range []func(context.Context, string) (*dlock.Lease, error){l.AcquireRead, l.TryAcquireRead} {
		inner, err := again(work, key)
		wantErr(t, err, nil)
		if inner.Fence() != outer.Fence() {
			t.Errorf("the nested lease has the fence %+v, not %+v", inner.Fence(), outer.Fence())
		}
		release(ctx, t, inner)
	}
	_, err := l.TryAcquireRead(ctx, key) // a plain context is another reader
	wantErr(t, err, dlock.ErrHeld)
	for _, upgrade := range []func(context.Context, string) (*dlock.Lease, error){l.Acquire, l.TryAcquire} {
		_, err := upgrade(work, key)
		wantErr(t, err, dlock.ErrReentry)
	}
	wantErr(t, outer.Err(), nil)
	out(t, w)
	inner, err := l.AcquireRead(work, key)
	wantErr(t, err, nil)
	release(ctx, t, outer)
	out(t, w) // one share is left
	release(ctx, t, inner)
	release(ctx, t, h.in(t, w)[0])
}

func writerMayRead(ctx context.Context, t testing.TB, h RWHarness, key string) {
	need(t, h.Reentrant, "the backend is not reentrant")
	l := h.New(t)
	outer := tryAcquire(ctx, t, l, key)
	work, cancel := outer.Context(ctx)
	defer cancel()
	for _, again := range []func(context.Context, string) (*dlock.Lease, error){l.AcquireRead, l.TryAcquire} {
		inner, err := again(work, key)
		wantErr(t, err, nil)
		if inner.Fence() != outer.Fence() {
			t.Errorf("the nested lease has the fence %+v, not %+v", inner.Fence(), outer.Fence())
		}
		release(ctx, t, inner)
		rwWantHeld(ctx, t, h, key, true)
	}
	h.Expire(t, key)
	waitDone(t, outer, h.TTL)
	_, err := l.AcquireRead(work, key)
	wantErr(t, err, dlock.ErrLost)
	rwWantFree(ctx, t, h, key)
}
