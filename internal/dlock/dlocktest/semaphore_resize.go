package dlocktest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
)

func semResizeUp(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 1)
	r := optional[dlock.Resizer](t, s)
	first := h.take(ctx, t, s, key, 1)
	got := h.waiting(ctx, t, h.New(t, 1), key, 1, 1)
	wantWaiting(t, got)
	wantErr(t, r.Resize(ctx, key, 3), nil)
	second := <-got
	wantErr(t, second.err, nil)
	h.wantFreePermits(ctx, t, h.New(t, 1), key, 1) // for clients that were configured otherwise too
	release(ctx, t, first)
	release(ctx, t, second.lease)
	h.wantFreePermits(ctx, t, s, key, 3)
	release(ctx, t, h.take(ctx, t, h.New(t, 1), key, 3))
	wantErr(t, r.Resize(ctx, key, 0), dlock.ErrInvalidPermits)
}

// semResizeDown takes nothing from holders, and grants nothing until enough permits are released.
func semResizeDown(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := optional[dlock.Resizer](t, s)
	var held []*dlock.Lease
	for range 4 {
		held = append(held, h.take(ctx, t, s, key, 1))
	}
	wantErr(t, r.Resize(ctx, key, 2), nil)
	got := h.waiting(ctx, t, h.New(t, 4), key, 1, 1)
	for _, lease := range held[:2] {
		wantErr(t, lease.Err(), nil)
		release(ctx, t, lease)
		pause(ctx, h.TTL/10)
		wantWaiting(t, got)
	}
	release(ctx, t, held[2])
	next := <-got
	wantErr(t, next.err, nil)
	_, err := s.TryAcquire(ctx, key, 1)
	wantErr(t, err, dlock.ErrHeld)
	_, err = s.TryAcquire(ctx, key, 3)
	wantErr(t, err, dlock.ErrInvalidPermits)
	release(ctx, t, held[3])
	release(ctx, t, next.lease)
	h.wantFreePermits(ctx, t, s, key, 2)
}

func semResizeUnderLoad(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := optional[dlock.Resizer](t, s)
	var g atomic.Pointer[gauge]
	g.Store(&gauge{})
	stop := h.crowd(ctx, t, key, 4, 3, h.TTL/200, g.Load) // of when a caller asks: what is granted is granted later
	for _, permits := range []int64{2, 5, 1, 3} {
		if err := r.Resize(ctx, key, int(permits)); err != nil {
			t.Error(err)
		}
		pause(ctx, h.TTL/5) // the earlier holders have released, and then some
		fresh := &gauge{}
		g.Store(fresh)
		pause(ctx, h.TTL/5)
		for fresh.peak.Load() == 0 && ctx.Err() == nil { // a busy machine takes longer
			pause(ctx, h.TTL/100)
		}
		if peak := fresh.peak.Load(); peak > permits || peak == 0 {
			t.Errorf("%d permits were out at once, there are %d", peak, permits)
		}
	}
	stop()
	h.wantFreePermits(ctx, t, s, key, 3)
}

// semResizeRefuses has waiters that can still be served, and between them waiters that cannot.
func semResizeRefuses(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := optional[dlock.Resizer](t, s)
	first := h.take(ctx, t, s, key, 3)
	var waiting []<-chan result
	for i, n := range []int{3, 2, 4, 1} {
		waiting = append(waiting, h.waiting(ctx, t, h.New(t, 4), key, n, i+1))
	}
	wantErr(t, r.Resize(ctx, key, 2), nil)
	for _, heavy := range []int{0, 2} {
		got := within(t, waiting[heavy], 5*h.TTL, "a waiter for more permits than there are waits on")
		wantErr(t, got.err, dlock.ErrInvalidPermits)
	}
	release(ctx, t, first)
	for _, light := range []int{1, 3} {
		got := <-waiting[light]
		if errors.Is(got.err, dlock.ErrInvalidPermits) {
			t.Fatal("a waiter that can be served was refused")
		}
		wantErr(t, got.err, nil)
		release(ctx, t, got.lease)
	}
	h.wantFreePermits(ctx, t, s, key, 2)
}
