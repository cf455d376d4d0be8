package redislock_test

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestDefaultsInRedis(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
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
