package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func get(t testing.TB, rdb redis.UniversalClient, key string) string {
	t.Helper()
	v, err := rdb.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

// A refusal by the server, or of the connection, has taken nothing.
func TestRefusalsAreCertain(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := miniredis.RunT(t)
		l := locker(t, redistest.Client(t, "redis://"+m.Addr()))
		for _, refusal := range []string{
			"LOADING Redis is loading the dataset in memory",
			"READONLY You can't write against a read only replica.",
			"OOM command not allowed when used memory > 'maxmemory'.",
			"MISCONF Redis is configured to save RDB snapshots",
		} {
			m.SetError(refusal)
			_, err := l.TryAcquire(t.Context(), "k")
			if err == nil || errors.Is(err, dlock.ErrUncertain) || errors.Is(err, dlock.ErrHeld) {
				t.Errorf("%s: TryAcquire = %v, want the refusal", refusal, err)
			}
		}
		m.SetError("")
		proxy := testbedtest.StartProxy(t, m.Addr())
		proxy.Refuse()
		l = locker(t, redistest.Client(t, "redis://"+proxy.Addr()))
		if _, err := l.Acquire(t.Context(), "k"); err == nil || errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("connection refused: Acquire = %v, want the refusal", err)
		}
	})
}

// Close waits for what an uncertain acquisition has left to do, over failures to
// do it, and no longer than it is notified.
func TestCloseWaitsForUncertainAcquisitions(t *testing.T) {
	t.Parallel()
	// The TTL, which ends the wait of Close too, is far away; one request takes a tenth of it.
	testbedtest.Steady(t, func(t testing.TB) {
		l, link := behind(t, testbedtest.Redis(t), redislock.Config{TTL: 10 * ttl, Timeout: ttl})
		load(t, l)
		key := rand.Text()
		link.Cut()
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrUncertain) {
			t.Fatalf("TryAcquire = %v, want ErrUncertain", err)
		}
		short, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		if err := l.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v while Redis is unavailable, want the end of the context", err)
		}
		link.Heal() // the acquisition arrives now
		long, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		if err := l.Close(long); err != nil {
			t.Errorf("Close = %v", err)
		}
		lease, err := locker(t, redistest.Client(t, testbedtest.Redis(t))).TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatalf("after Close: TryAcquire = %v, want the lock", err)
		}
		lease.Release(t.Context())
	})
}
