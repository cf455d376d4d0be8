package dlocktest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// caseOf is a promise that a harness of type H checks.
type caseOf[H any] struct {
	name string
	fn   func(ctx context.Context, t testing.TB, h H, key string)
}

// run runs all cases, in bubbles or alongside each other: atOnce of them at most, if it is not 0.
func run[H any](t *testing.T, cases []caseOf[H], h H, ttl time.Duration, atOnce int, bubble func(*testing.T, func(*testing.T))) {
	t.Helper()
	if atOnce == 0 {
		atOnce = len(cases)
	}
	turns := make(chan struct{}, atOnce)
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
			turns <- struct{}{}
			defer func() { <-turns }()
			testbedtest.Steady(t, bounded)
		})
	}
}

// These helpers distinguish a busy machine, which is late now and then, from a broken backend, which is always late.

// patiently repeats an acquisition whose request took too long, or got no connection in time, twice at most. A grant that the
// last attempt may have taken is released, or the key would not be granted again.
func patiently(t testing.TB, acquire func() (*dlock.Lease, error)) (*dlock.Lease, error) {
	t.Helper()
	for range 2 {
		lease, err := acquire()
		if !late(err) {
			return lease, err
		}
		t.Logf("Acquire = %v", err)
	}
	return acquire()
}

// late reports whether err says that a request took too long, or got no connection in time.
func late(err error) bool {
	return errors.Is(err, dlock.ErrUncertain) || errors.Is(err, os.ErrDeadlineExceeded)
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

// queued returns once n wait for key, or may do so, if the store does not report it.
func (h Harness) queued(ctx context.Context, t testing.TB, key string, n int) {
	t.Helper()
	h.queuedBehind(ctx, t, nil, key, n)
}

// queuedBehind is queued, but also returns when the holder's lease has ended: a waiter may have the key then.
func (h Harness) queuedBehind(ctx context.Context, t testing.TB, ended <-chan struct{}, key string, n int) {
	t.Helper()
	if h.waiters == nil && h.FIFO {
		h = h.inspecting(ctx, h.New(t))
	}
	if h.waiters == nil {
		pause(ctx, h.TTL/10)
		return
	}
	for end := time.Now().Add(10 * h.TTL); h.waiters(t, key) != n; {
		select {
		case <-ended:
			return
		default:
		}
		if ctx.Err() != nil || time.Now().After(end) { // what was to wait may have failed
			t.Fatalf("%d wait for the key, want %d", h.waiters(t, key), n)
		}
		pause(ctx, h.TTL/1000)
	}
}

// inspecting returns h with l as the client that counts those who wait, if it can.
func (h Harness) inspecting(ctx context.Context, l dlock.Locker) Harness {
	if in, ok := own(l).(dlock.Inspector); ok {
		h.waiters = func(_ testing.TB, key string) int {
			if state, err := in.Inspect(ctx, key); err == nil {
				return state.Waiters
			}
			return -1
		}
	}
	return h
}
