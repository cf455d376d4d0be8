package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// SemaphoreHarness is for a server of its own.
func SemaphoreHarness(t testing.TB, url string) dlocktest.SemaphoreHarness {
	t.Helper()
	admin := Client(t, url)
	open := func(t testing.TB, rdb redis.UniversalClient, permits int, ttl time.Duration) dlock.Semaphore {
		return Semaphore(t, rdb, redissem.Config{Permits: permits, TTL: ttl})
	}
	return dlocktest.SemaphoreHarness{
		New: func(t testing.TB, permits int) dlock.Semaphore {
			return open(t, Watched(t, Client(t, url)), permits, TTL)
		},
		TTL:    TTL,
		Expire: func(t testing.TB, key string) { Expire(t, admin, SemaphoreKey(key)) },
		Wipe: func(t testing.TB, key string) {
			if err := admin.Del(t.Context(), admin.Keys(t.Context(), SemaphoreKey(key)+"*").Val()...).Err(); err != nil {
				t.Error(err)
			}
		},
		Waiters: func(t testing.TB, key string) int {
			return int(admin.ZCard(t.Context(), SemaphoreKey(key)+":queue").Val())
		},
		FIFO: true, Ordered: true, Remembers: true,
		Other: func(t testing.TB, ttl time.Duration) dlock.Semaphore {
			return open(t, Client(t, url), 1, ttl)
		},
		Answers: Answers,
		Behind: func(t testing.TB, permits int) (dlock.Semaphore, dlocktest.Link) {
			rdb, link := Proxied(t, url)
			return open(t, rdb, permits, TTL), link
		},
	}
}

// Semaphore returns a Semaphore that is closed at the end of the test.
func Semaphore(t testing.TB, rdb redis.UniversalClient, cfg redissem.Config) *redissem.Semaphore {
	t.Helper()
	s, err := redissem.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, s.Close)
	return s
}

// SemaphoreKey is the key in Redis of a semaphore.
func SemaphoreKey(key string) string { return "shop:sem:{" + key + "}" }

// Expire makes every member of a sorted set one that has expired long ago.
func Expire(t testing.TB, rdb redis.UniversalClient, key string) {
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
