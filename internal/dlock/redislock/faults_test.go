package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestServerThatLosesItsData kills the server under a holder; it restarts empty.
func TestServerThatLosesItsData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		l, key := locker(t, redistest.Client(t, server.URL())), rand.Text()
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-lease.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the holder is not notified of the loss")
		}
		next, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Release(t.Context())
		if next.Fence().Token <= lease.Fence().Token {
			testbedtest.Final(t, "fence %+v follows %+v", next.Fence(), lease.Fence())
		}
	})
}

// TestServerThatStalls stops the server beyond the TTL: the holder must end its
// work in time, and a waiter must fail by its own deadline.
func TestServerThatStalls(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		l, key := locker(t, redistest.Client(t, server.URL())), rand.Text()
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), ttl/4)
		defer cancel()
		if _, err := l.Acquire(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire = %v, want the end of the context", err)
		}
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("TryAcquire without a deadline = %v, want ErrUncertain", err)
		}
		if d := time.Since(start); d > ttl {
			t.Errorf("two attempts on a silent server took %v", d)
		}
		select {
		case <-lease.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the holder is not notified of the loss")
		}
		if d := time.Since(start); d > ttl {
			t.Errorf("the lease ended after %v, its TTL is %v", d, ttl)
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		testbedtest.Eventually(t, "the lock", func() bool {
			next, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				return false
			}
			return next.Release(t.Context()) == nil
		})
	})
}

// TestValidityCountsFromBeforeTheRequest holds back the answer to an acquisition and
// then loses every renewal: the store has counted from the start.
func TestValidityCountsFromBeforeTheRequest(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		load(t, locker(t, rdb))
		var cut atomic.Bool
		rdb.AddHook(testbedtest.LateReplies(ttl/2, &cut))
		start := time.Now()
		lease, err := locker(t, rdb).TryAcquire(t.Context(), rand.Text())
		if err != nil {
			t.Fatal(err)
		}
		cut.Store(true)
		select {
		case <-lease.Done():
		case <-time.After(2 * ttl):
			t.Fatal("the lease continues")
		}
		if d := time.Since(start); d > 7*ttl/6 { // counted from the answer it would be half a TTL more
			t.Errorf("the lease ended %v after the request was sent, its TTL is %v", d, ttl)
		}
	})
}
