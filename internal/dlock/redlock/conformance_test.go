package redlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/redlock"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is what the leases of the tests have. A tenth of it, and a third, are times within
// which a busy machine must still get something done; all bounds grow with it.
const ttl = 3 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

// servers are what a lock is on.
type servers []*testbed.Redis

// start starts n servers, all at the same time.
func start(tb testing.TB, n int, cfg testbed.RedisConfig) servers {
	tb.Helper()
	all := make(servers, n)
	for i := range all {
		all[i] = testbedtest.StartRedis(tb, cfg)
	}
	return all
}

func (s servers) urls() []string {
	urls := make([]string, len(s))
	for i, server := range s {
		urls[i] = server.URL()
	}
	return urls
}

// ready starts n servers that grant at once: they know that they have nothing to forget.
func ready(tb testing.TB, n int) servers {
	tb.Helper()
	return settled(tb, start(tb, n, testbed.RedisConfig{}))
}

// settled makes servers that are new grant at once.
func settled(tb testing.TB, s servers) servers {
	tb.Helper()
	for _, server := range s {
		settle(tb, client(tb, server.URL()))
	}
	return s
}

// settle makes a server that is new grant at once.
func settle(tb testing.TB, rdb redis.UniversalClient) {
	tb.Helper()
	if err := rdb.Set(tb.Context(), "shop:redlock:known", "1", 0).Err(); err != nil {
		tb.Fatal(err)
	}
}

func client(tb testing.TB, url string) redis.UniversalClient {
	tb.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func clients(tb testing.TB, urls []string) []redis.UniversalClient {
	tb.Helper()
	all := make([]redis.UniversalClient, len(urls))
	for i, url := range urls {
		all[i] = client(tb, url)
	}
	return all
}

// locker returns a Locker with clients of its own.
func locker(tb testing.TB, urls []string, cfg redlock.Config) *redlock.Locker {
	tb.Helper()
	return lockerOn(tb, clients(tb, urls), cfg)
}

func lockerOn(tb testing.TB, servers []redis.UniversalClient, cfg redlock.Config) *redlock.Locker {
	tb.Helper()
	l, err := redlock.New(servers, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return l
}

// behind returns a Locker whose connections go through a proxy for each server.
func (s servers) behind(t testing.TB, cfg redlock.Config) (*redlock.Locker, []*testbed.Proxy) {
	t.Helper()
	var (
		urls    []string
		proxies []*testbed.Proxy
	)
	for _, server := range s {
		proxy := testbedtest.StartProxy(t, server.Addr())
		proxies = append(proxies, proxy)
		urls = append(urls, "redis://"+proxy.Addr())
	}
	return locker(t, urls, cfg), proxies
}

// link breaks all proxies together.
func link(t testing.TB, proxies []*testbed.Proxy) dlocktest.Link {
	t.Helper()
	each := func(f func(p *testbed.Proxy)) func() {
		return func() {
			for _, p := range proxies {
				f(p)
			}
		}
	}
	return dlocktest.Link{
		Cut: each((*testbed.Proxy).BlackHole),
		Heal: each(func(p *testbed.Proxy) {
			if err := p.Pass(); err != nil {
				t.Error(err)
			}
		}),
		Refuse:    each((*testbed.Proxy).Refuse),
		LoseReply: each(func(p *testbed.Proxy) { p.DropReply("evalsha") }),
		Lost: func() (lost int) {
			for _, p := range proxies {
				lost = max(lost, p.Dropped())
			}
			return lost
		},
	}
}

func TestFive(t *testing.T) {
	t.Parallel()
	conformance(t, 5)
}

func TestThree(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	conformance(t, 3)
}

// conformance runs the tests of dlocktest on n servers.
func conformance(t *testing.T, n int) {
	t.Helper()
	s := ready(t, n)
	remove := func(t testing.TB, keys ...string) {
		t.Helper()
		var all sync.WaitGroup
		for _, server := range s {
			rdb := client(t, server.URL())
			all.Go(func() {
				if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	h := dlocktest.Harness{
		New:       func(t testing.TB) dlock.Locker { return locker(t, s.urls(), redlock.Config{TTL: ttl}) },
		TTL:       ttl,
		Reentrant: true,
		Expire:    func(t testing.TB, key string) { remove(t, lockKey(key)) },
		Wipe:      func(t testing.TB, key string) { remove(t, lockKey(key), fenceKey(key)) },
		Leftovers: func(t testing.TB, key string) (left []string) {
			for _, server := range s {
				if client(t, server.URL()).Exists(t.Context(), lockKey(key)).Val() > 0 {
					left = append(left, server.Addr())
				}
			}
			return left
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.Locker {
			return locker(t, s.urls(), redlock.Config{TTL: ttl, MaxHold: limit})
		},
		Other: func(t testing.TB, ttl time.Duration) dlock.Locker {
			return locker(t, s.urls(), redlock.Config{TTL: ttl})
		},
		Answers: []error{redis.Nil, redis.ErrPoolTimeout},
		Foreign: func(t testing.TB, key string) {
			for _, server := range s {
				if err := client(t, server.URL()).Set(t.Context(), lockKey(key), "maintenance", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
		},
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			l, proxies := s.behind(t, redlock.Config{TTL: ttl})
			return l, link(t, proxies)
		},
	}
	dlocktest.Run(t, h)
}

func lockKey(key string) string  { return "shop:redlock:{" + key + "}" }
func fenceKey(key string) string { return lockKey(key) + ":fence" }
