package redislock_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestCond(t *testing.T) {
	t.Parallel()
	dlocktest.RunCond(t, condHarness(t, testbedtest.Redis(t)))
}

func TestCondOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunCond(t, condHarness(t, "redis://"+m.Addr()))
}

func condHarness(t testing.TB, url string) dlocktest.CondHarness {
	t.Helper()
	h := condHarnessOn(t, func(t testing.TB) redis.UniversalClient { return redistest.Watched(t, redistest.Client(t, url)) })
	h.WaiterTTL = 5 * ttl / 4 // five polls, one every TTL/4
	h.Behind = func(t testing.TB) (dlocktest.CondClient, dlocktest.Link) {
		rdb, link := redistest.Proxied(t, url)
		return condClient(t, rdb), link
	}
	return h
}

// condHarnessOn is for any deployment of Redis.
func condHarnessOn(t testing.TB, open func(t testing.TB) redis.UniversalClient) dlocktest.CondHarness {
	t.Helper()
	admin := open(t)
	return dlocktest.CondHarness{
		New: func(t testing.TB) dlocktest.CondClient { return condClient(t, open(t)) },
		TTL: ttl,
		Expire: func(t testing.TB, key string) {
			if err := admin.Del(t.Context(), lockKey(key)).Err(); err != nil {
				t.Error(err)
			}
		},
		Waiting:   func(t testing.TB, key string) int { return condWaiting(t, admin, key) },
		Reentrant: true,
	}
}

func condClient(t testing.TB, rdb redis.UniversalClient) dlocktest.CondClient {
	t.Helper()
	l := locker(t, rdb)
	return dlocktest.CondClient{Locker: l, A: condition(t, l, "a"), B: condition(t, l, "b")}
}

func condition(t testing.TB, l *redislock.Locker, name string) *redislock.Cond {
	t.Helper()
	c, err := redislock.NewCond(l, name)
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, c.Close)
	return c
}

// condWaiting counts who waits for key, or for a signal.
func condWaiting(t testing.TB, admin redis.UniversalClient, key string) int {
	t.Helper()
	n := 0
	for _, set := range []string{":queue", ":cond:a", ":cond:b"} {
		waiting, err := admin.ZCard(t.Context(), lockKey(key)+set).Result()
		if err != nil {
			t.Error(err)
		}
		n += int(waiting)
	}
	return n
}
