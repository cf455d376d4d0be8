package dlocktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/semlock"
)

// gauge counts the permits that are out, as their holders see it.
type gauge struct{ now, peak atomic.Int64 }

func (g *gauge) enter(n int) {
	now := g.now.Add(int64(n))
	for peak := g.peak.Load(); now > peak && !g.peak.CompareAndSwap(peak, now); {
		peak = g.peak.Load()
	}
}

func (g *gauge) leave(n int) { g.now.Add(int64(-n)) }

func (g *gauge) check(t testing.TB, permits int64) {
	t.Helper()
	if peak := g.peak.Load(); peak > permits {
		t.Errorf("%d permits were out at once, there are %d", peak, permits)
	}
}

// crowd has three clients of as many goroutines take and release one permit each, until stop is called.
func (h SemaphoreHarness) crowd(ctx context.Context, t testing.TB, key string, permits, goroutines int, hold time.Duration, current func() *gauge) (stop func()) {
	busy, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for range 3 {
		s := h.New(t, permits)
		for range goroutines {
			wg.Go(func() {
				for busy.Err() == nil {
					if err := churn(ctx, s, key, 1, 1, hold, current()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	return func() { cancel(); wg.Wait() }
}

// churn takes between one and most permits of key and releases them after hold,
// for that many rounds. It returns the first error.
func churn(ctx context.Context, s dlock.Semaphore, key string, most, rounds int, hold time.Duration, g *gauge) error {
	for range rounds {
		n := 1 + rand.N(most)
		lease, err := s.Acquire(ctx, key, n)
		if err != nil {
			return err
		}
		g.enter(n)
		pause(ctx, hold) // gives others the time to enter, if they can
		g.leave(n)
		if err := lease.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

func semNeverMore(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	const permits, clients, goroutines, rounds = 3, 4, 4, 12
	var (
		wg sync.WaitGroup
		g  gauge
	)
	for range clients {
		s := h.New(t, permits)
		for range goroutines {
			wg.Go(func() {
				if err := churn(ctx, s, key, permits, rounds, time.Microsecond, &g); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	g.check(t, permits)
	h.wantFreePermits(ctx, t, h.New(t, permits), key, permits)
}

func semTryRefuses(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	a, b := h.New(t, 2), h.New(t, 2)
	one, two := h.take(ctx, t, a, key, 1), h.take(ctx, t, b, key, 1)
	start := time.Now()
	for _, s := range []dlock.Semaphore{a, b} { // to have one permit gives no other
		_, err := s.TryAcquire(ctx, key, 1)
		wantErr(t, err, dlock.ErrHeld)
	}
	if d := time.Since(start); d > 2*h.TTL {
		t.Errorf("two refusals took %v", d)
	}
	if one.Key() != key {
		t.Errorf("Key = %q, want %q", one.Key(), key)
	}
	release(ctx, t, one)
	three, err := b.TryAcquire(ctx, key, 1)
	wantErr(t, err, nil)
	release(ctx, t, two)
	release(ctx, t, three)
}

func semAcquireWaits(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	first := h.take(ctx, t, h.New(t, 2), key, 1)
	second := h.take(ctx, t, h.New(t, 2), key, 1)
	third := wantWait(ctx, t, first, h.TTL/2, func() *dlock.Lease { return h.take(ctx, t, h.New(t, 2), key, 1) })
	release(ctx, t, second)
	release(ctx, t, third)
}

func semInOrder(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.FIFO, "the backend does not grant in order")
	first := h.take(ctx, t, h.New(t, 1), key, 1)
	inOrder(ctx, t, 5, first, func() dlock.Locker { return semlock.Mutex(h.New(t, 1)) }, h.queued)
}

func semCancelled(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	lease := h.take(ctx, t, h.New(t, 2), key, 2)

	short, cancel := context.WithTimeout(ctx, h.TTL/2)
	defer cancel()
	_, err := h.New(t, 2).Acquire(short, key, 2)
	wantErr(t, err, context.DeadlineExceeded)

	reason := errors.New("shutting down")
	caused, end := context.WithCancelCause(ctx)
	time.AfterFunc(h.TTL/2, func() { end(reason) })
	_, err = h.New(t, 2).Acquire(caused, key, 1)
	wantErr(t, err, context.Canceled)
	wantErr(t, err, reason)

	release(ctx, t, lease)
	h.wantFreePermits(ctx, t, h.New(t, 2), key, 2)
}

func semDeadContextAcquires(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	s := h.New(t, 2)
	_, err := s.Acquire(dead, key, 1)
	wantErr(t, err, context.Canceled)
	_, err = s.TryAcquire(dead, key, 1)
	wantErr(t, err, context.Canceled)
	h.wantFreePermits(ctx, t, s, key, 2)
}

func semDeadContextReleases(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	dead, cancel := context.WithCancel(ctx)
	lease := h.take(dead, t, h.New(t, 2), key, 2)
	cancel()
	wantErr(t, lease.Err(), nil) // the lease outlives the context it was acquired with
	release(dead, t, lease)
	h.wantFreePermits(ctx, t, h.New(t, 2), key, 2)
}

// semWaitersLeaveNothing cancels waiters at random moments, some of them as they
// are granted their permit.
func semWaitersLeaveNothing(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	const permits, clients, waiters = 3, 3, 20
	var (
		wg sync.WaitGroup
		g  gauge
	)
	for range clients {
		s := h.New(t, permits)
		for range waiters {
			wg.Go(func() {
				short, cancel := context.WithTimeout(ctx, rand.N(h.TTL/2))
				defer cancel()
				err := churn(short, s, key, permits, 1000, h.TTL/200, &g)
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, dlock.ErrUncertain) {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	g.check(t, permits)
	h.wantFreePermits(ctx, t, h.New(t, permits), key, permits)
	if h.Waiters != nil {
		if n := h.Waiters(t, key); n != 0 {
			t.Errorf("the store still knows %d waiters", n)
		}
	}
}
