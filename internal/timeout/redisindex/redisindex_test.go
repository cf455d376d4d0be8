package redisindex_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"example.com/shop/internal/timeout/timeouttest"
)

// client returns a client of a server, as New requires it.
func client(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	opts.MaxRetries, opts.ContextTimeoutEnabled, opts.DialerRetries = -1, true, 1
	rdb := redis.NewClient(opts)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func index(tb testing.TB, rdb redis.UniversalClient, cfg redisindex.Config) *redisindex.Index {
	tb.Helper()
	x, err := redisindex.New(rdb, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// harness runs the suite with clients of a store.
func harness(open func(tb testing.TB) redis.UniversalClient) timeouttest.IndexHarness {
	var trips sync.Map // counters by index
	return timeouttest.IndexHarness{
		Clients: func(t *testing.T, n int) (clients []timeout.Index) {
			t.Helper()
			for range n {
				rdb, counter := open(t), &hook{}
				rdb.AddHook(counter)
				x := index(t, rdb, redisindex.Config{})
				trips.Store(x, counter)
				clients = append(clients, x)
			}
			return clients
		},
		Now: func(t *testing.T, _ timeout.Index) time.Time {
			t.Helper()
			now, err := open(t).Time(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			return now
		},
		Wipe: func(t *testing.T, _ timeout.Index, kind, lane string) {
			t.Helper()
			rdb := open(t)
			for n := range 200 { // more numbers than a shard gets
				for _, key := range []string{"pending", "leased", "fence", "complete"} {
					if err := rdb.Del(t.Context(), keyOf(timeout.Shard{Kind: kind, Lane: lane, N: n}, key)).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
		RoundTrips: func(t *testing.T, x timeout.Index) int {
			t.Helper()
			counter, _ := trips.Load(x)
			c, ok := counter.(*hook)
			if !ok {
				t.Fatal("a client of another harness")
			}
			return c.count()
		},
	}
}

func TestIndexOnRedis(t *testing.T) {
	t.Parallel()
	url := testbedtest.Redis(t)
	timeouttest.RunIndex(t, harness(func(tb testing.TB) redis.UniversalClient {
		tb.Helper()
		return client(tb, url)
	}))
}

func TestIndexOnMiniredis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	t.Run("suite", func(t *testing.T) { // the server outlives cases that run in parallel
		timeouttest.RunIndex(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return client(tb, "redis://"+m.Addr())
		}))
	})
}

func TestIndexOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
	t.Run("suite", func(t *testing.T) {
		timeouttest.RunIndex(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return clusterClient(tb, c)
		}))
	})
}

func TestIndexBehindSentinel(t *testing.T) {
	testbedtest.FullSize(t)
	s := testbedtest.StartSentinel(t, testbed.SentinelConfig{})
	t.Run("suite", func(t *testing.T) {
		timeouttest.RunIndex(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return sentinelClient(tb, s)
		}))
	})
}

func clusterClient(tb testing.TB, c *testbed.Cluster) *redis.ClusterClient {
	tb.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		ClusterStateReloadInterval: time.Second,
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func sentinelClient(tb testing.TB, s *testbed.Sentinel) *redis.Client {
	tb.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.MasterName(), SentinelAddrs: s.SentinelAddrs(),
		MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// hook counts commands and pipelines with scripts.
type hook struct {
	mu sync.Mutex
	n  int
}

func (h *hook) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func (h *hook) add(cmds ...redis.Cmder) {
	for _, c := range cmds {
		if strings.HasPrefix(c.Name(), "eval") {
			h.mu.Lock()
			h.n++
			h.mu.Unlock()
			return
		}
	}
}

func (*hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		h.add(c)
		return next(ctx, c)
	}
}

func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, c []redis.Cmder) error {
		h.add(c...)
		return next(ctx, c)
	}
}

// keyOf names a key of a shard, as documented.
func keyOf(s timeout.Shard, role string) string {
	return "shop:timeout:{" + nameOf(s) + "}:" + role
}

func nameOf(s timeout.Shard) string { return fmt.Sprintf("%s:%s:%d", s.Kind, s.Lane, s.N) }
