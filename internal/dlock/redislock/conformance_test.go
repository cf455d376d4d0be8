package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is what the leases of the tests have. A tenth of it, and a third, are times within
// which a busy machine must still get something done; all bounds grow with it.
const ttl = redistest.TTL

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestRedis(t *testing.T) {
	t.Parallel()
	conformance(t, testbedtest.Redis(t), 1000, 0)
}

// TestMiniredis is for the demo, whose Redis is embedded: a second target alongside
// the real one, never instead of it. It interprets the scripts in this process, so
// that it runs alongside no other test, and four cases at once: more ask for more than an interpreter does in time.
func TestMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	conformance(t, "redis://"+m.Addr(), 40, 4) // it takes a millisecond to run a script
}

// conformance runs the tests of dlocktest on the server at url, with so many waiters and cases at once.
func conformance(t *testing.T, url string, crowd, atOnce int) {
	t.Helper()
	cfg := redislock.Config{TTL: ttl}
	with := func(change func(*redislock.Config)) redislock.Config {
		own := cfg
		change(&own)
		return own
	}
	admin := redistest.Client(t, url)
	remove := func(t testing.TB, keys ...string) {
		t.Helper()
		if err := admin.Del(t.Context(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	h := dlocktest.Harness{
		New:       func(t testing.TB) dlock.Locker { return configured(t, redistest.Client(t, url), cfg) },
		TTL:       ttl,
		FIFO:      true,
		Crowd:     crowd,
		AtOnce:    atOnce,
		Reentrant: true,
		Expire:    func(t testing.TB, key string) { remove(t, lockKey(key)) },
		Wipe: func(t testing.TB, key string) {
			remove(t, lockKey(key), fenceKey(key), lockKey(key)+":queue", lockKey(key)+":alive")
		},
		Leftovers: func(t testing.TB, key string) (left []string) {
			k := lockKey(key)
			for _, k := range []string{k, k + ":queue", k + ":alive"} {
				if admin.Exists(t.Context(), k).Val() > 0 {
					left = append(left, k)
				}
			}
			return left
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.Locker {
			return configured(t, redistest.Client(t, url), with(func(c *redislock.Config) { c.MaxHold = limit }))
		},
	}
	h.FallbackPoll = ttl / 4
	h.Deaf = func(t testing.TB) dlock.Locker { return configured(t, deaf{redistest.Client(t, url)}, cfg) }
	h.Other = func(t testing.TB, ttl time.Duration) dlock.Locker {
		return configured(t, redistest.Client(t, url), with(func(c *redislock.Config) { c.TTL = ttl }))
	}
	h.Answers = redistest.Answers
	h.Foreign = func(t testing.TB, key string) { foreign(t, admin, lockKey(key)) }
	if strings.HasPrefix(url, "redis://") { // a proxy is in front of one server
		h.Behind = func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			return behind(t, url, cfg)
		}
	}
	dlocktest.Run(t, h)
}

// deaf is a client whose subscriptions get nothing.
type deaf struct{ redis.UniversalClient }

// Subscribe implements redis.UniversalClient.
func (d deaf) Subscribe(ctx context.Context, _ ...string) *redis.PubSub {
	return d.UniversalClient.Subscribe(ctx, "nothing")
}

// behind returns a Locker whose connections go through a proxy.
func behind(t testing.TB, url string, cfg redislock.Config) (*redislock.Locker, dlocktest.Link) {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, opts.Addr)
	return configured(t, redistest.Client(t, "redis://"+proxy.Addr()), cfg), redistest.Link(t, proxy)
}

// foreign puts a value that is no grant where the grants are, without a TTL.
func foreign(t testing.TB, admin redis.UniversalClient, key string) {
	t.Helper()
	if err := admin.Set(t.Context(), key, "maintenance", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func locker(t testing.TB, rdb redis.UniversalClient) *redislock.Locker {
	t.Helper()
	return configured(t, rdb, redislock.Config{TTL: ttl})
}

func configured(t testing.TB, rdb redis.UniversalClient, cfg redislock.Config) *redislock.Locker {
	t.Helper()
	l, err := redislock.New(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, l.Close)
	return l
}

func lockKey(key string) string  { return "shop:lock:{" + key + "}" }
func fenceKey(key string) string { return lockKey(key) + ":fence" }
