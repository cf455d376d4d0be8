package redissem_test

import (
	"context"
	"crypto/rand"
	"testing"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestSemaphoreUsage(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		s := redistest.Semaphore(t, rdb, redissem.Config{Permits: 4, TTL: ttl})
		want := func(what string, permits, held, waiters int) {
			t.Helper()
			p, h, w, err := s.Usage(t.Context(), key)
			if err != nil || p != permits || h != held || w != waiters {
				t.Errorf("%s: %d permits, %d held, %d waiters, %v; want %d, %d, %d", what, p, h, w, err, permits, held, waiters)
			}
		}
		want("never used", 4, 0, 0)
		lease, err := s.TryAcquire(t.Context(), key, 3)
		if err != nil {
			t.Fatal(err)
		}
		want("three are held", 4, 3, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Acquire(ctx, key, 2)
		}()
		testbedtest.Eventually(t, "the waiter", func() bool {
			_, _, waiters, err := s.Usage(t.Context(), key)
			return err == nil && waiters == 1
		})
		cancel()
		<-ended
		testbedtest.Eventually(t, "the waiter to leave", func() bool { // in the background, if the server is slow
			_, _, waiters, err := s.Usage(t.Context(), key)
			return err == nil && waiters == 0
		})
		if err := s.Resize(t.Context(), key, 7); err != nil {
			t.Fatal(err)
		}
		want("resized", 7, 3, 0)
		redistest.Expire(t, rdb, redistest.SemaphoreKey(key))
		want("expired and not dropped", 7, 0, 0)
		lease.Release(t.Context())
		want("released", 7, 0, 0)
	})
}
