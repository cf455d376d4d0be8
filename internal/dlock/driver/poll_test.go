package driver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/backoff"
)

func TestPollSpreadsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Decorrelated{Min: 2 * time.Millisecond, Max: 40 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var pauses []time.Duration
		last := time.Now()
		_, err := driver.Poll(ctx, b, func(context.Context) (*dlock.Lease, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return nil, dlock.ErrHeld
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Poll = %v, want the end of the context", err)
		}
		if pauses[0] != 0 || pauses[1] < b.Min || pauses[1] > 3*b.Min {
			t.Errorf("first pauses %v, want none and then %v to %v", pauses[:2], b.Min, 3*b.Min)
		}
		seen := map[time.Duration]bool{}
		for _, p := range pauses[1:] {
			if p < b.Min || p > b.Max {
				t.Errorf("pause of %v, want %v to %v", p, b.Min, b.Max)
			}
			seen[p] = true
		}
		if len(seen) < len(pauses)/4 {
			t.Errorf("%d different pauses of %d: waiters would stay in step", len(seen), len(pauses))
		}
	})
}

func TestPollStopsAtAnyOtherAnswer(t *testing.T) {
	n := 0
	_, err := driver.Poll(t.Context(), backoff.Decorrelated{Min: 1, Max: 1}, func(context.Context) (*dlock.Lease, error) {
		if n++; n < 3 {
			return nil, dlock.ErrHeld
		}
		return nil, errAway
	})
	if !errors.Is(err, errAway) || n != 3 {
		t.Errorf("Poll = %v after %d attempts, want %v after 3", err, n, errAway)
	}
}
