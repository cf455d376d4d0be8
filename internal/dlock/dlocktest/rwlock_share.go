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
)

func readersShare(ctx context.Context, t testing.TB, h RWHarness, key string) {
	a, b := h.New(t), h.New(t)
	readers := []*dlock.Lease{
		rwTake(ctx, t, h, key, false),
		tryAcquire(ctx, t, reader{a}, key),
		tryAcquire(ctx, t, reader{a}, key), // the same client is another owner too
		tryAcquire(ctx, t, reader{b}, key),
	}
	rwWantHeld(ctx, t, h, key, false)
	for _, lease := range readers {
		wantErr(t, lease.Err(), nil)
		if lease.Key() != key {
			t.Errorf("Key = %q, want %q", lease.Key(), key)
		}
		rwWantHeld(ctx, t, h, key, false)
		release(ctx, t, lease)
	}
	rwWantFree(ctx, t, h, key)
}

func writerExcludesAll(ctx context.Context, t testing.TB, h RWHarness, key string) {
	a := h.New(t)
	lease := tryAcquire(ctx, t, a, key)
	for range 2 {
		for _, write := range []bool{true, false} {
			_, err := side(a, write).TryAcquire(ctx, key)
			wantErr(t, err, dlock.ErrHeld)
		}
		rwWantHeld(ctx, t, h, key, true)
	}
	release(ctx, t, lease)
	release(ctx, t, tryAcquire(ctx, t, reader{a}, key))
}

func rwAcquireWaits(ctx context.Context, t testing.TB, h RWHarness, key string) {
	for _, pair := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		lease := rwTake(ctx, t, h, key, pair[0])
		release(ctx, t, wantWait(ctx, t, lease, h.TTL/4, func() *dlock.Lease { return rwTake(ctx, t, h, key, pair[1]) }))
	}
}

// cancelledWriter has a writer give up for whom readers already wait.
func cancelledWriter(ctx context.Context, t testing.TB, h RWHarness, key string) {
	lease := rwTake(ctx, t, h, key, false)
	reason := errors.New("shutting down")
	caused, end := context.WithCancelCause(ctx)
	gaveUp := make(chan error, 1)
	go func() {
		_, err := h.New(t).Acquire(caused, key)
		gaveUp <- err
	}()
	h.queued(ctx, t, key, 1)
	second := make(chan error, 1)
	go func() {
		l, err := h.New(t).AcquireRead(ctx, key)
		if err == nil {
			err = l.Release(ctx)
		}
		second <- err
	}()
	h.queued(ctx, t, key, 2)
	end(reason)
	err := <-gaveUp
	wantErr(t, err, context.Canceled)
	wantErr(t, err, reason)
	select {
	case err := <-second:
		wantErr(t, err, nil)
	case <-time.After(h.TTL / 2):
		t.Error("a reader still waits for a writer that has given up")
	}
	release(ctx, t, lease)
	rwWantFree(ctx, t, h, key)
}

// rwMutualExclusion protects plain memory, so that the race detector sees a violation even where the counts happen to
// come out right.
func rwMutualExclusion(ctx context.Context, t testing.TB, h RWHarness, key string) {
	const clients, goroutines, rounds = 3, 4, 6
	var (
		wg               sync.WaitGroup
		readers, writers atomic.Int32
		n, wrote         int // written by writers, read by readers
		accepted         dlock.Fence
	)
	write := func(f dlock.Fence) error {
		defer writers.Add(-1)
		if writers.Add(1) != 1 || readers.Load() != 0 {
			t.Error("a writer is not alone")
		}
		if f == accepted || !f.Passes(accepted) {
			return dlock.ErrFenced
		}
		accepted = f
		n++
		pause(ctx, rand.N(h.TTL/1000))
		return nil
	}
	read := func(f dlock.Fence) error {
		defer readers.Add(-1)
		readers.Add(1)
		if writers.Load() != 0 {
			t.Error("a reader is alongside a writer")
		}
		if f == accepted || n < 0 {
			return dlock.ErrFenced
		}
		pause(ctx, rand.N(h.TTL/1000))
		return nil
	}
	for i := range clients * goroutines {
		l := h.New(t)
		isWriter, use := i%goroutines == 0, read
		if isWriter {
			wrote += rounds
			use = write
		}
		wg.Go(func() {
			for range rounds {
				inside(ctx, t, side(l, isWriter), key, use)
			}
		})
	}
	wg.Wait()
	if n != wrote {
		t.Fatalf("n = %d, want %d", n, wrote)
	}
}

// rwWaitersLeaveNothing has many give up at random, alongside some who get in, and
// some just when they get in.
func rwWaitersLeaveNothing(ctx context.Context, t testing.TB, h RWHarness, key string) {
	const waiters = 60
	l := h.New(t)
	lease := rwTake(ctx, t, h, key, true)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			short, cancel := context.WithTimeout(ctx, (1+rand.N(time.Duration(10)))*h.TTL/20)
			defer cancel()
			err := dlock.Do(short, side(l, i%3 == 0), key, func(context.Context, dlock.Fence) error { return nil })
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	}
	pause(ctx, h.TTL/4)
	release(ctx, t, lease)
	wg.Wait()
	start := time.Now()
	last := rwTake(ctx, t, h, key, true) // what a late answer took is released soon
	wantSoon(t, h.TTL, start)
	h.queued(ctx, t, key, 0)
	release(ctx, t, last)
	rwWantFree(ctx, t, h, key)
}
