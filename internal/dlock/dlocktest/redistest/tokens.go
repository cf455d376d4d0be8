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
	h := semaphoreHarness(url, admin, func(t testing.TB, rdb redis.UniversalClient, permits int, ttl time.Duration) dlock.Semaphore {
		return Tokens(t, rdb, redistokens.Config{Permits: permits, TTL: ttl})
	})
	h.Expire = func(t testing.TB, key string) { Expire(t, admin, SemaphoreKey(key)+":holders") }
	return h
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
