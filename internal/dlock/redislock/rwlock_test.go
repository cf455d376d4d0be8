package redislock_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestRW(t *testing.T) {
	t.Parallel()
	dlocktest.RunRW(t, rwHarness(t, testbedtest.Redis(t)))
}

func TestRWOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunRW(t, rwHarness(t, "redis://"+m.Addr()))
}

func rwHarness(t testing.TB, url string) dlocktest.RWHarness {
	t.Helper()
	h := rwHarnessOn(t, func(t testing.TB) redis.UniversalClient { return watched(t, client(t, url)) })
	h.Patience = 3 * time.Second
	h.Behind = func(t testing.TB) (dlock.RWLocker, dlocktest.Link) {
		rdb, link := proxied(t, url)
		return rwLock(t, rdb), link
	}
	return h
}

// rwHarnessOn is for any deployment of Redis.
func rwHarnessOn(t testing.TB, open func(t testing.TB) redis.UniversalClient) dlocktest.RWHarness {
	t.Helper()
	admin := open(t)
	return dlocktest.RWHarness{
		New:         func(t testing.TB) dlock.RWLocker { return rwLock(t, open(t)) },
		TTL:         ttl,
		Expire:      func(t testing.TB, key string) { rwExpire(t, admin, key) },
		Waiting:     func(t testing.TB, key string) int { return rwWaiting(t, admin, key) },
		PhaseFair:   true,
		SharedFence: true,
		Reentrant:   true,
		NoReentry: func(t testing.TB) dlock.RWLocker {
			return rwLockWith(t, open(t), redisrw.Config{NoReentry: true})
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.RWLocker {
			return rwLockWith(t, open(t), redisrw.Config{MaxHold: limit})
		},
		Other: func(t testing.TB, ttl time.Duration) dlock.RWLocker {
			return rwLockWith(t, open(t), redisrw.Config{TTL: ttl})
		},
		Answers: answers,
	}
}

// proxied returns a client whose connections go through a proxy.
func proxied(t testing.TB, url string) (redis.UniversalClient, dlocktest.Link) {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, opts.Addr)
	return client(t, "redis://"+proxy.Addr()), linkOf(t, proxy)
}

// rwLock returns an RW that is closed at the end of the test.
func rwLock(t testing.TB, rdb redis.UniversalClient) *redisrw.RW {
	t.Helper()
	return rwLockWith(t, rdb, redisrw.Config{})
}

func rwLockWith(t testing.TB, rdb redis.UniversalClient, cfg redisrw.Config) *redisrw.RW {
	t.Helper()
	cfg.TTL = cmp.Or(cfg.TTL, ttl)
	l, err := redisrw.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

func rwKey(key string) string { return "shop:rw:{" + key + "}" }

// rwExpire ends every grant of key, as the clock would.
func rwExpire(t testing.TB, admin redis.UniversalClient, key string) {
	t.Helper()
	readers := admin.ZRange(t.Context(), rwKey(key)+":readers", 0, -1).Val()
	for _, id := range readers {
		if err := admin.ZAddXX(t.Context(), rwKey(key)+":readers", redis.Z{Score: 1, Member: id}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if admin.HExists(t.Context(), rwKey(key), "writer").Val() {
		if err := admin.HSet(t.Context(), rwKey(key), "until", 1).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func rwWaiting(t testing.TB, admin redis.UniversalClient, key string) int {
	t.Helper()
	n := 0
	for _, queue := range []string{":writers-waiting", ":readers-waiting", ":readers-next"} {
		waiting, err := admin.ZCard(t.Context(), rwKey(key)+queue).Result()
		if err != nil {
			t.Error(err)
		}
		n += int(waiting)
	}
	return n
}
