package dlocktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

func semWeighted(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
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

// semHeadNotStarved asks for all permits while others take and give back one each,
// so that there is hardly a moment at which all are free.
func semHeadNotStarved(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	const permits = 3
	stop := make(chan struct{})
	var (
		wg sync.WaitGroup
		g  gauge
	)
	for range 3 {
		s := h.New(t, permits)
		for range 2 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					lease, err := s.Acquire(ctx, key, 1)
					if err != nil {
						t.Error(err)
						return
					}
					g.enter(1)
					pause(ctx, h.TTL/100)
					g.leave(1)
					lease.Release(ctx)
				}
			})
		}
	}
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
	close(stop)
	wg.Wait()
	if peak := g.peak.Load(); peak > permits {
		t.Errorf("%d permits were out at once, there are %d", peak, permits)
	}
}

// semHeadNotPassed keeps one permit free, which is not enough for the head.
func semHeadNotPassed(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	if !h.FIFO {
		t.Skip("the backend does not grant in order")
	}
	s := h.New(t, 2)
	first := h.take(ctx, t, s, key, 1)
	heavy := h.waiting(ctx, h.New(t, 2), key, 2)
	light := h.waiting(ctx, h.New(t, 2), key, 1)
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
func semNoDeadlock(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
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

func semTooMany(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	s := h.New(t, 3)
	held := h.take(ctx, t, s, key, 3)
	start := time.Now()
	for _, n := range []int{-1, 0, 4, 1 << 30} {
		_, err := s.Acquire(ctx, key, n)
		wantErr(t, err, dlock.ErrInvalidPermits)
		_, err = s.TryAcquire(ctx, key, n)
		wantErr(t, err, dlock.ErrInvalidPermits)
	}
	if d := time.Since(start); d > h.TTL {
		t.Errorf("refusals took %v", d)
	}
	release(ctx, t, held)
	h.wantFreePermits(ctx, t, s, key, 3)
}

func semResizeUp(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	s := h.New(t, 1)
	r := resizer(t, s)
	first := h.take(ctx, t, s, key, 1)
	got := h.waiting(ctx, h.New(t, 1), key, 1)
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

// semResizeDown takes nothing from holders, and grants nothing until enough has come back.
func semResizeDown(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := resizer(t, s)
	var held []*dlock.Lease
	for range 4 {
		held = append(held, h.take(ctx, t, s, key, 1))
	}
	wantErr(t, r.Resize(ctx, key, 2), nil)
	got := h.waiting(ctx, h.New(t, 4), key, 1)
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

func semResizeUnderLoad(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := resizer(t, s)
	stop := make(chan struct{})
	var (
		wg   sync.WaitGroup
		lock sync.Mutex
		g    = &gauge{}
	)
	current := func() *gauge {
		lock.Lock()
		defer lock.Unlock()
		return g
	}
	for range 3 {
		s := h.New(t, 4)
		for range 3 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					lease, err := s.Acquire(ctx, key, 1)
					if err != nil {
						t.Error(err)
						return
					}
					mine := current()
					mine.enter(1)
					pause(ctx, h.TTL/200)
					mine.leave(1)
					lease.Release(ctx)
				}
			})
		}
	}
	for _, permits := range []int64{2, 5, 1, 3} {
		if err := r.Resize(ctx, key, int(permits)); err != nil {
			t.Error(err)
		}
		pause(ctx, h.TTL/5) // those of before have given back, and then some
		lock.Lock()
		g = &gauge{}
		fresh := g
		lock.Unlock()
		pause(ctx, h.TTL/5)
		if peak := fresh.peak.Load(); peak > permits || peak == 0 {
			t.Errorf("%d permits were out at once, there are %d", peak, permits)
		}
	}
	close(stop)
	wg.Wait()
	h.wantFreePermits(ctx, t, s, key, 3)
}

func semResizeRefuses(ctx context.Context, t *testing.T, h SemaphoreHarness, key string) {
	s := h.New(t, 4)
	r := resizer(t, s)
	first := h.take(ctx, t, s, key, 3)
	heavy := h.waiting(ctx, h.New(t, 4), key, 3)
	light := h.waiting(ctx, h.New(t, 4), key, 2)
	wantErr(t, r.Resize(ctx, key, 2), nil)
	select {
	case got := <-heavy:
		wantErr(t, got.err, dlock.ErrInvalidPermits)
	case <-time.After(h.TTL + time.Second):
		t.Fatal("a waiter for more permits than there are waits on")
	}
	release(ctx, t, first)
	got := <-light
	if errors.Is(got.err, dlock.ErrInvalidPermits) {
		t.Fatal("a waiter that can be served was refused")
	}
	wantErr(t, got.err, nil)
	release(ctx, t, got.lease)
	h.wantFreePermits(ctx, t, s, key, 2)
}
