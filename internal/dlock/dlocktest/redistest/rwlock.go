package redistest

import (
	"cmp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// RWHarness is for a server of its own.
func RWHarness(t testing.TB, url string) dlocktest.RWHarness {
	t.Helper()
	h := RWHarnessOn(t, func(t testing.TB) redis.UniversalClient { return Watched(t, Client(t, url)) })
	h.WaiterTTL = TTL
	h.Behind = func(t testing.TB) (dlock.RWLocker, dlocktest.Link) {
		rdb, link := Proxied(t, url)
		return RW(t, rdb, redisrw.Config{}), link
	}
	return h
}

// RWHarnessOn is for any deployment of Redis.
func RWHarnessOn(t testing.TB, open func(t testing.TB) redis.UniversalClient) dlocktest.RWHarness {
	t.Helper()
	admin := open(t)
	return dlocktest.RWHarness{
		New:     func(t testing.TB) dlock.RWLocker { return RW(t, open(t), redisrw.Config{}) },
		TTL:     TTL,
		Expire:  func(t testing.TB, key string) { Expire(t, admin, RWKey(key)) },
		Waiting: func(t testing.TB, key string) int { return RWWaiting(t, admin, key) },
		FIFO:    true,
		Capped: func(t testing.TB, limit time.Duration) dlock.RWLocker {
			return RW(t, open(t), redisrw.Config{MaxHold: limit})
		},
		Other: func(t testing.TB, ttl time.Duration) dlock.RWLocker {
			return RW(t, open(t), redisrw.Config{TTL: ttl})
		},
		Answers: Answers,
	}
}

// RW returns an RW that is closed at the end of the test.
func RW(t testing.TB, rdb redis.UniversalClient, cfg redisrw.Config) *redisrw.RW {
	t.Helper()
	cfg.TTL = cmp.Or(cfg.TTL, TTL)
	l, err := redisrw.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, l.Close)
	return l
}

// RWKey is the key in Redis of a read/write lock.
func RWKey(key string) string { return "shop:rwsem:{" + key + "}" }

// RWWaiting returns how many wait for key.
func RWWaiting(t testing.TB, admin redis.UniversalClient, key string) int {
	t.Helper()
	n, err := admin.ZCard(t.Context(), RWKey(key)+":queue").Result()
	if err != nil {
		t.Error(err)
	}
	return int(n)
}
