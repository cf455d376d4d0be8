package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/testbed/testbedtest"
)

// targets runs a test on a real server and on miniredis.
func targets(t *testing.T, f func(t testing.TB, rdb redis.UniversalClient)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, client(t, testbedtest.Redis(t)))
		})
	})
	t.Run("miniredis", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, client(t, "redis://"+miniredis.RunT(t).Addr()))
		})
	})
}

func get(t testing.TB, rdb redis.UniversalClient, key string) string {
	t.Helper()
	v, err := rdb.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

func TestDefaultsInRedis(t *testing.T) {
	t.Parallel()
	targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, err := redislock.New(rdb, redislock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		key := rand.Text()
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		defer lease.Release(t.Context())
		f := lease.Fence()
		if got, want := get(t, rdb, lockKey(key)), f.Owner+":"+strconv.FormatUint(f.Token, 10); got != want {
			t.Errorf("lock = %q, want %q", got, want)
		}
		if got, want := get(t, rdb, fenceKey(key)), strconv.FormatUint(f.Token, 10)+":"; !strings.HasPrefix(got, want) {
			t.Errorf("fence = %q, want %q and the time", got, want)
		}
		for k, want := range map[string]time.Duration{lockKey(key): 30 * time.Second, fenceKey(key): 24 * time.Hour} {
			if got := rdb.PTTL(t.Context(), k).Val(); got > want || got < want-10*time.Second {
				t.Errorf("TTL of %s = %v, want %v", k, got, want)
			}
		}
	})
}

// The token keeps growing when the clock of the server is behind the last one,
// and keeps all of its sixteen digits.
func TestFenceWhenTheClockIsBehind(t *testing.T) {
	t.Parallel()
	targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key, l := rand.Text(), locker(t, rdb)
		if err := rdb.Set(t.Context(), fenceKey(key), "9000000000000001", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		for want := uint64(9000000000000002); want < 9000000000000005; want++ {
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if got := lease.Fence().Token; got != want {
				t.Errorf("token = %d, want %d", got, want)
			}
			lease.Release(t.Context())
		}
	})
}

// A refusal by the server, or of the connection, has taken nothing.
func TestRefusalsAreCertain(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := miniredis.RunT(t)
		l := locker(t, client(t, "redis://"+m.Addr()))
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
		l = locker(t, client(t, "redis://"+proxy.Addr()))
		if _, err := l.Acquire(t.Context(), "k"); err == nil || errors.Is(err, dlock.ErrUncertain) {
			t.Errorf("connection refused: Acquire = %v, want the refusal", err)
		}
	})
}

func TestKeysThatBreakTheHashTag(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l := locker(t, client(t, "redis://"+miniredis.RunT(t).Addr()))
		for _, key := range []string{"", "}", "}x", "x}", "a{}b"} {
			if _, err := l.Acquire(t.Context(), key); err == nil {
				t.Errorf("key %q is accepted", key)
			}
		}
	})
}

func TestNewChecksTheClient(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		for name, c := range map[string]struct {
			opts redis.Options
			ok   bool
		}{
			"as required":       {redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}, true},
			"defaults":          {redis.Options{}, false},
			"repeats":           {redis.Options{ContextTimeoutEnabled: true}, false},
			"ignores deadlines": {redis.Options{MaxRetries: -1}, false},
		} {
			rdb := redis.NewClient(&c.opts)
			if _, err := redislock.New(rdb, redislock.Config{}); (err == nil) != c.ok {
				t.Errorf("%s: New = %v", name, err)
			}
			rdb.Close()
		}
	})
}

// Close waits for what an uncertain acquisition has left to do, over failures to
// do it, and no longer than it is told.
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
			t.Errorf("Close = %v while Redis is away, want the end of the context", err)
		}
		link.Heal() // the acquisition arrives now
		long, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		if err := l.Close(long); err != nil {
			t.Errorf("Close = %v", err)
		}
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatalf("after Close: TryAcquire = %v, want the lock", err)
		}
		lease.Release(t.Context())
	})
}
