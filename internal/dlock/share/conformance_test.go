package share_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/share"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// In memory nobody waits while others run, so no grant is shared. The other test has what is about turns.
func TestMemory(t *testing.T) {
	store := memlock.New(memlock.Config{TTL: 10 * time.Second})
	dlocktest.Run(t, dlocktest.Harness{
		New:       func(testing.TB) dlock.Locker { return share.New(store) },
		TTL:       10 * time.Second,
		Expire:    func(_ testing.TB, key string) { store.Expire(key) },
		Reentrant: true,
		Bubble:    synctest.Test,
	})
}

func TestRedis(t *testing.T) {
	const ttl = redistest.TTL
	url := testbedtest.Redis(t)
	admin := redistest.Client(t, url)
	open := func(t testing.TB, url string) *share.Locker {
		l, err := redislock.New(redistest.Client(t, url), redislock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		testbedtest.Closing(t, l.Close)
		return share.New(l)
	}
	remove := func(t testing.TB, keys ...string) {
		if err := admin.Del(t.Context(), keys...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	lock := func(key string) string { return "shop:lock:{" + key + "}" }
	dlocktest.Run(t, dlocktest.Harness{
		New:       func(t testing.TB) dlock.Locker { return open(t, url) },
		TTL:       ttl,
		FIFO:      true,
		Shares:    true,
		Crowd:     100,
		Reentrant: true,
		Expire:    func(t testing.TB, key string) { remove(t, lock(key)) },
		Wipe: func(t testing.TB, key string) {
			remove(t, lock(key), lock(key)+":fence", lock(key)+":queue", lock(key)+":alive")
		},
		Leftovers: func(t testing.TB, key string) (left []string) {
			for _, k := range []string{lock(key), lock(key) + ":queue", lock(key) + ":alive"} {
				if admin.Exists(t.Context(), k).Val() > 0 {
					left = append(left, k)
				}
			}
			return left
		},
		FallbackPoll: ttl / 4,
		Answers:      redistest.Answers,
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			opts, err := redis.ParseURL(url)
			if err != nil {
				t.Fatal(err)
			}
			proxy := testbedtest.StartProxy(t, opts.Addr)
			return open(t, "redis://"+proxy.Addr()), redistest.Link(t, proxy)
		},
	})
}
