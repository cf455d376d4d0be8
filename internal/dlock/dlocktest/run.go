package dlocktest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/testbed/testbedtest"
)

// caseOf is a promise that a harness of type H checks.
type caseOf[H any] struct {
	name string
	fn   func(ctx context.Context, t testing.TB, h H, key string)
}

// run runs all cases, in bubbles or alongside each other.
func run[H any](t *testing.T, cases []caseOf[H], h H, ttl time.Duration, bubble func(*testing.T, func(*testing.T))) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bounded := func(t testing.TB) {
				ctx, cancel := context.WithTimeout(t.Context(), 40*ttl)
				defer cancel()
				c.fn(ctx, t, h, c.name+"-"+rand.Text()) // another run may use the same server
			}
			if bubble != nil {
				bubble(t, func(t *testing.T) { bounded(t) })
				return
			}
			t.Parallel()
			testbedtest.Steady(t, bounded)
		})
	}
}

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

// slowness acquires key and releases it until ctx ends, with a client of its own. It
// returns the longest time that an acquisition and its release took on this machine.
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

// wantWaiters waits until n wait for key.
func wantWaiters(ctx context.Context, t testing.TB, h Harness, in dlock.Inspector, key string, n int) {
	var state dlock.State
	for end := time.Now().Add(5 * h.TTL); time.Now().Before(end); pause(ctx, 2*time.Millisecond) {
		var err error
		if state, err = in.Inspect(ctx, key); err == nil && state.Waiters == n {
			return
		}
	}
	t.Fatalf("%d wait for the key, want %d", state.Waiters, n)
}

// queued returns once n wait for key, or may do so, if the store does not report it.
func (h Harness) queued(ctx context.Context, t testing.TB, key string, n int) {
	t.Helper()
	h.queuedBehind(ctx, t, nil, key, n)
}

// queuedBehind is queued, but also returns when the holder's lease has ended: a waiter may have the key then.
func (h Harness) queuedBehind(ctx context.Context, t testing.TB, ended <-chan struct{}, key string, n int) {
	t.Helper()
	waiting := h.waiters
	if waiting == nil && h.FIFO {
		if in, ok := own(h.New(t)).(dlock.Inspector); ok {
			waiting = func(_ testing.TB, key string) int {
				if state, err := in.Inspect(ctx, key); err == nil {
					return state.Waiters
				}
				return -1
			}
		}
	}
	if waiting == nil {
		pause(ctx, h.TTL/10)
		return
	}
	for waiting(t, key) != n {
		select {
		case <-ended:
			return
		default:
		}
		if ctx.Err() != nil {
			t.Fatalf("%d wait for the key, want %d", waiting(t, key), n)
		}
		pause(ctx, h.TTL/1000)
	}
}
