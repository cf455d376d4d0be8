package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// semLostReply lets the store grant permits to a client that is not notified of
// it. The client may find out and keep them, or release them and say so.
func semLostReply(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	for _, acquire := range []func(dlock.Semaphore, context.Context, string, int) (*dlock.Lease, error){
		dlock.Semaphore.TryAcquire, dlock.Semaphore.Acquire,
	} {
		s, link := h.Behind(t, 3)                  // what the one before has to release takes no part
		release(ctx, t, h.take(ctx, t, s, key, 1)) // connected
		link.LoseReply()
		lease, err := acquire(s, ctx, key, 2)
		wantLostReply(t, link)
		free := 3
		if err == nil {
			free = 1
		} else {
			wantErr(t, err, dlock.ErrUncertain)
		}
		h.wantFreePermits(ctx, t, h.New(t, 3), key, free)
		if err == nil {
			release(ctx, t, lease)
		}
	}
	h.wantFreePermits(ctx, t, h.New(t, 3), key, 3)
}

// semLostRelease lets the store release permits and drops the reply. That is not a loss.
func semLostRelease(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	s, link := h.Behind(t, 3)
	lease := h.take(ctx, t, s, key, 2)
	link.LoseReply()
	err := lease.Release(ctx)
	if errors.Is(err, dlock.ErrLost) {
		t.Errorf("Release = %v, want the error of the network, or none", err)
	}
	wantLostReply(t, link)
	h.wantFreePermits(ctx, t, h.New(t, 3), key, 3)
}

// semBlackHoleAcquire is blackHoleAcquire for permits.
func semBlackHoleAcquire(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	s, link := h.Behind(t, 2)
	release(ctx, t, h.take(ctx, t, s, key, 1)) // connected
	link.Cut()
	start := time.Now()
	short, cancel := context.WithTimeout(ctx, h.TTL/8)
	defer cancel()
	_, err := s.Acquire(short, key, 2)
	wantErr(t, err, context.DeadlineExceeded)
	if d := time.Since(start); d > h.TTL {
		t.Errorf("Acquire returned %v after the deadline", d-h.TTL/8)
	}
	link.Heal()
	h.wantFreePermits(ctx, t, h.New(t, 2), key, 2)
}

func semBlackHole(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Behind != nil, "there is no network")
	s, link := h.Behind(t, 2)
	next := h.New(t, 2)
	other := h.take(ctx, t, next, key, 1)
	for range 2 {
		cutOff(ctx, t, h.TTL, link,
			func() (*dlock.Lease, error) { return s.Acquire(ctx, key, 1) },
			func() *dlock.Lease { return h.take(ctx, t, next, key, 1) })
	}
	wantErr(t, other.Err(), nil)
	release(ctx, t, other)
}

// semWipe lets clients that are new to a key take what they get of a store that has
// forgotten the former holders.
func semWipe(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Wipe != nil, "the store cannot forget")
	const permits = 3
	before := h.take(ctx, t, h.New(t, permits), key, permits)
	h.Wipe(t, key)
	var after []*dlock.Lease
	for range permits + 2 {
		lease, err := h.New(t, permits).TryAcquire(ctx, key, 1)
		if err == nil {
			after = append(after, lease)
		} else if !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v", err)
		}
	}
	if len(after) > permits {
		t.Errorf("%d permits were granted after the loss, there are %d", len(after), permits)
	}
	waitDone(t, before, h.TTL) // by its next renewal, or the end of its lease validity
	wantErr(t, before.Release(ctx), dlock.ErrLost)
	for _, lease := range after {
		wantErr(t, lease.Err(), nil)
		release(ctx, t, lease)
	}
	h.wantFreePermits(ctx, t, h.New(t, permits), key, permits)
}

// semKnownWipe lets the former holder consider its lease valid for as long as it may: it receives nothing. The others
// have used the key before, and wait.
func semKnownWipe(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	need(t, h.Wipe != nil && h.Behind != nil && h.Remembers, "nobody can know of a loss")
	const permits = 2
	known := h.New(t, permits)
	release(ctx, t, h.take(ctx, t, known, key, 1))
	cutOff, link := h.Behind(t, permits)
	before := h.take(ctx, t, cutOff, key, permits)
	link.Cut()
	defer link.Heal()
	h.Wipe(t, key)
	_, err := known.TryAcquire(ctx, key, 1) // it proves the loss
	wantErr(t, err, dlock.ErrHeld)
	_, err = h.New(t, permits).TryAcquire(ctx, key, 1) // to those who are new as well
	wantErr(t, err, dlock.ErrHeld)
	after := h.take(ctx, t, known, key, permits)
	wantErr(t, before.Err(), dlock.ErrLost)
	release(ctx, t, after)
}
