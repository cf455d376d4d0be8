package dlocktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

func semWeighted(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	a, b := h.New(t, 4), h.New(t, 4)
	three := h.take(ctx, t, a, key, 3)
	_, err := b.TryAcquire(ctx, key, 2) // all or none
	wantErr(t, err, dlock.ErrHeld)
	one, err := b.TryAcquire(ctx, key, 1)
	wantErr(t, err, nil)
	_, err = a.TryAcquire(ctx, key, 1)
	wantErr(t, err, dlock.ErrHeld)
	release(ctx, t, three)
	two, err := b.TryAcquire(ctx, key, 2)
	wantErr(t, err, nil)
	release(ctx, t, one)
	release(ctx, t, two)
	release(ctx, t, h.take(ctx, t, b, key, 4))
	h.wantFreePermits(ctx, t, a, key, 4)
}

// semHeadNotStarved asks for all permits while others take and release one each,
// so that there is hardly a moment at which all are free.
func semHeadNotStarved(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	const permits = 3
	var g gauge
	stop := h.crowd(ctx, t, key, permits, 2, h.TTL/100, func() *gauge { return &g })
	heavy := h.New(t, permits)
	for range 3 {
		lease, err := heavy.Acquire(ctx, key, permits)
		if err != nil {
			t.Errorf("Acquire(%d) = %v", permits, err)
			break
		}
		g.enter(permits)
		pause(ctx, h.TTL/100)
		g.leave(permits)
		lease.Release(ctx)
	}
	stop()
	g.check(t, permits)
}

// semHeadNotPassed keeps one permit free, which is not enough for the head.
func semHeadNotPassed(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	s := h.New(t, 2)
	first := h.take(ctx, t, s, key, 1)
	heavy := h.waiting(ctx, t, h.New(t, 2), key, 2, 1)
	light := h.waiting(ctx, t, h.New(t, 2), key, 1, 2)
	_, err := s.TryAcquire(ctx, key, 1)
	wantErr(t, err, dlock.ErrHeld)
	wantWaiting(t, heavy)
	wantWaiting(t, light)
	release(ctx, t, first)
	r := <-heavy
	wantErr(t, r.err, nil)
	wantWaiting(t, light)
	release(ctx, t, r.lease)
	r = <-light
	wantErr(t, r.err, nil)
	release(ctx, t, r.lease)
}

// semNoDeadlock lets acquirers compete who each need more than half.
func semNoDeadlock(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	const permits, clients, rounds = 5, 4, 6
	var (
		wg sync.WaitGroup
		g  gauge
	)
	for range clients {
		s := h.New(t, permits)
		wg.Go(func() {
			for range rounds {
				lease, err := s.Acquire(ctx, key, 3)
				if err != nil {
					t.Error(err)
					return
				}
				g.enter(3)
				g.leave(3)
				lease.Release(ctx)
			}
		})
	}
	wg.Wait()
	if peak := g.peak.Load(); peak != 3 {
		t.Errorf("%d permits were out at once, want 3", peak)
	}
	h.wantFreePermits(ctx, t, h.New(t, permits), key, permits)
}

func semTooMany(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	s := h.New(t, 3)
	held := h.take(ctx, t, s, key, 3)
	start := time.Now()
	for _, n := range []int{-1, 0, 4, 1 << 30} {
		_, err := s.Acquire(ctx, key, n)
		wantErr(t, err, dlock.ErrInvalidPermits)
		_, err = s.TryAcquire(ctx, key, n)
		wantErr(t, err, dlock.ErrInvalidPermits)
	}
	if d := time.Since(start); d > 3*h.TTL {
		t.Errorf("refusals took %v", d)
	}
	release(ctx, t, held)
	h.wantFreePermits(ctx, t, s, key, 3)
}
