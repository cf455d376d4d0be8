package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redistokens"
	"example.com/shop/internal/testbed/testbedtest"
)

// TokensHarness is for a server of its own.
func TokensHarness(t testing.TB, url string) dlocktest.SemaphoreHarness {
	t.Helper()
	admin := Client(t, url)
	return dlocktest.SemaphoreHarness{
		New: func(t testing.TB, permits int) dlock.Semaphore {
			return Tokens(t, Watched(t, Client(t, url)), redistokens.Config{Permits: permits, TTL: TTL})
		},
		TTL:    TTL,
		Expire: func(t testing.TB, key string) { Expire(t, admin, SemaphoreKey(key)+":holders") },
		Wipe: func(t testing.TB, key string) {
			if err := admin.Del(t.Context(), admin.Keys(t.Context(), SemaphoreKey(key)+"*").Val()...).Err(); err != nil {
				t.Error(err)
			}
		},
		Remembers: true,
		Ordered:   true,
		Other: func(t testing.TB, ttl time.Duration) dlock.Semaphore {
			return Tokens(t, Client(t, url), redistokens.Config{TTL: ttl})
		},
		Answers: Answers,
		Behind: func(t testing.TB, permits int) (dlock.Semaphore, dlocktest.Link) {
			rdb, link := Proxied(t, url)
			return Tokens(t, rdb, redistokens.Config{Permits: permits, TTL: TTL}), link
		},
	}
}

// Tokens returns Tokens that are closed at the end of the test.
func Tokens(t testing.TB, rdb redis.UniversalClient, cfg redistokens.Config) *redistokens.Tokens {
	t.Helper()
	s, err := redistokens.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, s.Close)
	return s
}
