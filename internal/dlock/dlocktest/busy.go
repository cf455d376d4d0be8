package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// What follows tells a machine that is busy from a backend that is broken: the one
// is late now and then, the other always.

// patiently repeats an acquisition whose request took too long, twice at most. What
// the last one may have taken is released, or it would not be granted again.
func patiently(t testing.TB, acquire func() (*dlock.Lease, error)) (*dlock.Lease, error) {
	t.Helper()
	for range 2 {
		lease, err := acquire()
		if err == nil || !errors.Is(err, dlock.ErrUncertain) {
			return lease, err
		}
		t.Logf("Acquire = %v", err)
	}
	return acquire()
}

// slowness takes key and releases it until ctx ends, with a client of its own, and
// returns the longest time that this took: so slow is the machine.
func slowness(ctx context.Context, l dlock.Locker, key string) (longest time.Duration) {
	for ctx.Err() == nil {
		start := time.Now()
		if lease, err := l.Acquire(ctx, key); err == nil {
			_ = lease.Release(ctx)
		}
		longest = max(longest, time.Since(start))
		pause(ctx, 5*time.Millisecond)
	}
	return longest
}
