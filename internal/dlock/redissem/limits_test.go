package redissem_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A holder that is stuck is not renewed for ever.
func TestPermitsAreNotHeldForEver(t *testing.T) {
	t.Parallel()
	rdb := redistest.Client(t, testbedtest.Redis(t))
	s := redistest.Semaphore(t, rdb, redissem.Config{TTL: ttl, MaxHold: ttl / 2})
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
		defer cancel()
		key := rand.Text()
		lease, err := s.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		next, err := s.Acquire(ctx, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 2*ttl {
			t.Errorf("the permit was back after %v", d)
		}
		lost, ok := errors.AsType[*dlock.LostError](lease.Err())
		if !ok || lost.Reason != dlock.MaxHold {
			t.Errorf("lease: %v, want the reason %q", lease.Err(), dlock.MaxHold)
		}
		next.Release(ctx)
	})
}

func TestConfigsOfSemaphores(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, "redis://127.0.0.1:1")
		for _, cfg := range []redissem.Config{{Permits: -1}, {TTL: time.Microsecond}} {
			if _, err := redissem.New(rdb, cfg); err == nil {
				t.Errorf("NewSemaphore accepts %+v", cfg)
			}
		}
	})
}

// Without a server every call fails soon, and says that nothing was taken.
func TestSemaphoresWithoutServer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := semaphore(t, redistest.Client(t, "redis://127.0.0.1:1"), 2)
		for _, acquire := range []func(context.Context, string, int) (*dlock.Lease, error){s.Acquire, s.TryAcquire} {
			_, err := acquire(t.Context(), rand.Text(), 1)
			if err == nil || errors.Is(err, dlock.ErrUncertain) || errors.Is(err, dlock.ErrHeld) {
				t.Errorf("error = %v, want the refusal of the connection", err)
			}
		}
	})
}
