package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	dlocktest.RunSemaphore(t, tokensHarness(t, testbedtest.Redis(t)))
}

func TestTokensOnMiniredis(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	dlocktest.RunSemaphore(t, tokensHarness(t, "redis://"+m.Addr()))
}

// Tokens with one permit are a lock.
func TestTokensAsMutex(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	h := tokensHarness(t, testbedtest.Redis(t))
	dlocktest.Run(t, dlocktest.Harness{
		New:    func(t testing.TB) dlock.Locker { return dlock.Mutex(h.New(t, 1)) },
		TTL:    h.TTL,
		Expire: h.Expire,
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			s, link := h.Behind(t, 1)
			return dlock.Mutex(s), link
		},
	})
}

func tokensHarness(t testing.TB, url string) dlocktest.SemaphoreHarness {
	t.Helper()
	admin := client(t, url)
	return dlocktest.SemaphoreHarness{
		New: func(t testing.TB, permits int) dlock.Semaphore {
			return tokens(t, watched(t, client(t, url)), redistokens.Config{Permits: permits, TTL: ttl})
		},
		TTL:    ttl,
		Expire: func(t testing.TB, key string) { lapse(t, admin, semKey(key)+":holders") },
		Wipe: func(t testing.TB, key string) {
			if err := admin.Del(t.Context(), admin.Keys(t.Context(), semKey(key)+"*").Val()...).Err(); err != nil {
				t.Error(err)
			}
		},
		Remembers: true,
		Ordered:   true,
		Other: func(t testing.TB, ttl time.Duration) dlock.Semaphore {
			return tokens(t, client(t, url), redistokens.Config{TTL: ttl})
		},
		Answers: answers,
		Behind: func(t testing.TB, permits int) (dlock.Semaphore, dlocktest.Link) {
			rdb, link := proxied(t, url)
			return tokens(t, rdb, redistokens.Config{Permits: permits, TTL: ttl}), link
		},
	}
}

// tokens returns Tokens that are closed at the end of the test.
func tokens(t testing.TB, rdb redis.UniversalClient, cfg redistokens.Config) *redistokens.Tokens {
	t.Helper()
	s, err := redistokens.New(rdb, cfg)
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
