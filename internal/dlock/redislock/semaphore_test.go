package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestSemaphore(t *testing.T) {
	t.Parallel()
	dlocktest.RunSemaphore(t, semaphoreHarness(t, testbedtest.Redis(t)))
}

func TestSemaphoreOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunSemaphore(t, semaphoreHarness(t, "redis://"+m.Addr()))
}

// A semaphore with one permit is a lock.
func TestSemaphoreAsMutex(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	h := semaphoreHarness(t, testbedtest.Redis(t))
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(t testing.TB) dlock.Locker { return dlock.Mutex(h.New(t, 1)) },
		TTL:    h.TTL,
		Expire: h.Expire,
		FIFO:   true,
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			s, link := h.Behind(t, 1)
			return dlock.Mutex(s), link
		},
	})
}

func semaphoreHarness(t testing.TB, url string) dlocktest.SemaphoreHarness {
	t.Helper()
	admin := client(t, url)
	return dlocktest.SemaphoreHarness{
		New: func(t testing.TB, permits int) dlock.Semaphore {
			return semaphore(t, watched(t, client(t, url)), redissem.Config{Permits: permits, TTL: ttl})
		},
		TTL:    ttl,
		Expire: func(t testing.TB, key string) { lapse(t, admin, semKey(key)) },
		Wipe: func(t testing.TB, key string) {
			if err := admin.Del(t.Context(), admin.Keys(t.Context(), semKey(key)+"*").Val()...).Err(); err != nil {
				t.Error(err)
			}
		},
		Remembers: true,
		Waiters:   func(t testing.TB, key string) int { return int(admin.ZCard(t.Context(), semKey(key)+":queue").Val()) },
		FIFO:      true,
		Ordered:   true,
		Other: func(t testing.TB, ttl time.Duration) dlock.Semaphore {
			return semaphore(t, client(t, url), redissem.Config{TTL: ttl})
		},
		Answers: answers,
		Behind: func(t testing.TB, permits int) (dlock.Semaphore, dlocktest.Link) {
			rdb, link := proxied(t, url)
			return semaphore(t, rdb, redissem.Config{Permits: permits, TTL: ttl}), link
		},
	}
}

// semaphore returns a Semaphore that is closed at the end of the test.
func semaphore(t testing.TB, rdb redis.UniversalClient, cfg redissem.Config) *redissem.Semaphore {
	t.Helper()
	s, err := redissem.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func semKey(key string) string { return "shop:sem:{" + key + "}" }

// lapse makes every member of a sorted set one that has lapsed long ago.
func lapse(t testing.TB, rdb redis.UniversalClient, key string) {
	t.Helper()
	err := redis.NewScript(`
		for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
			redis.call('ZADD', KEYS[1], 1, member)
		end
		return 1`).Run(t.Context(), rdb, []string{key}).Err()
	if err != nil {
		t.Fatal(err)
	}
}
