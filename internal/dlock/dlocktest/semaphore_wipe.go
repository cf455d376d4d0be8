package dlocktest

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/dlock"
)

// semWipe lets clients that are new to a key take what they get of a store that has
// forgotten the former holders.
func semWipe(ctx context.Context, t testing.TB, h SemaphoreHarness, key string) {
	if h.Wipe == nil {
		t.Skip("the store cannot forget")
	}
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
	if h.Wipe == nil || h.Behind == nil || !h.Remembers {
		t.Skip("nobody can know of a loss")
	}
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
