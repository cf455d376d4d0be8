package dlocktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
)

// These helpers distinguish a busy machine, which is late now and then, from a broken backend, which is always late.

// patiently repeats an acquisition whose request took too long, twice at most. A grant that the last attempt may have
// taken is released, or the key would not be granted again.
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

// slowness takes key and releases it until ctx ends, with a client of its own. It returns the longest time that this
// took, as a measure of the machine.
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
