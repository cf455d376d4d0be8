package redislock_test

import (
	"crypto/rand"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/testbed/testbedtest"
)

// Keys that are free and share a slot are taken by one request.
func TestAcquireAllIsOneRequest(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		load(t, locker(t, rdb))
		tag := "{" + rand.Text() + "}"
		keys := []string{tag + ":a", tag + ":b", "order:" + tag, "b"}
		l := locker(t, rdb)
		warm, err := l.AcquireAll(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		warm.Release(t.Context())
		var requests atomic.Int32
		rdb.AddHook(spy{seen: func(redis.Cmder) { requests.Add(1) }})
		lease, err := l.AcquireAll(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		lease.Release(t.Context())
		if n := rdb.Exists(t.Context(), "shop:lock:"+tag+":lock:"+keys[0], lockKey("b")).Val(); n != 0 {
			t.Errorf("%d locks are left", n)
		}
	})
}

// A key with a hash tag is not mistaken for one without.
func TestKeysWithAndWithoutAHashTag(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, tag := locker(t, redistest.Client(t, testbedtest.Redis(t))), rand.Text()
		for _, key := range []string{tag, "{" + tag + "}", "{" + tag + "}:fence", tag + "{" + tag + "}", "{" + tag, "{" + tag + "}{x}"} {
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Errorf("TryAcquire(%q) = %v", key, err)
				continue
			}
			t.Cleanup(func() { lease.Release(t.Context()) })
		}
	})
}

func TestRaiseCounterLiftsLaterTokens(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, key := locker(t, rdb), rand.Text()
		const accepted = 8_000_000_000_000_000 // by a resource, from a clock far ahead
		for _, atLeast := range []uint64{accepted, 5} {
			if err := l.RaiseCounter(t.Context(), key, atLeast); err != nil {
				t.Fatal(err)
			}
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if got := lease.Fence().Token; got <= accepted {
				t.Errorf("token = %d, want more than %d", got, uint64(accepted))
			}
			lease.Release(t.Context())
		}
		if err := l.RaiseCounter(t.Context(), key, 1<<53); err == nil {
			t.Error("a token is accepted that a script cannot count")
		}
	})
}
