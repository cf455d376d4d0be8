package redisindex_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
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
	opts.ReadTimeout, opts.WriteTimeout = time.Minute, time.Minute
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

// harness runs the conformance tests with clients of a store.
func harness(open func(tb testing.TB) redis.UniversalClient) timeouttest.IndexHarness {
	var clients sync.Map // by index
	of := func(t *testing.T, x timeout.Index) redis.UniversalClient {
		t.Helper()
		v, _ := clients.Load(x)
		c, ok := v.(redis.UniversalClient)
		if !ok {
			t.Fatal("a client of another harness")
		}
		return c
	}
	return timeouttest.IndexHarness{
		Clients: func(t *testing.T, n int) (all []timeout.Index) {
			t.Helper()
			for range n {
				rdb := open(t)
				x := index(t, rdb, redisindex.Config{})
				clients.Store(x, rdb)
				all = append(all, x)
			}
			return all
		},
		Now: func(t *testing.T, x timeout.Index) time.Time {
			t.Helper()
			now, err := of(t, x).Time(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			return now
		},
		Wipe: func(t *testing.T, x timeout.Index, kind, partition string) {
			t.Helper()
			for _, s := range x.Shards(kind, partition) {
				if err := of(t, x).Del(t.Context(), keyOf(s, "pending"), keyOf(s, "pass")).Err(); err != nil {
					t.Fatal(err)
				}
			}
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
		h := harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return client(tb, "redis://"+m.Addr())
		})
		h.Elapse = m.FastForward
		timeouttest.RunIndex(t, h)
	})
}

// With a sentinel, as with a cluster, another server can become the master.
func TestIndexBehindSentinel(t *testing.T) {
	testbedtest.FullSize(t)
	s := testbedtest.StartSentinel(t)
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

// keyOf names a key of a shard, as documented.
func keyOf(s timeout.Shard, role string) string {
	return "shop:timeout:{" + nameOf(s) + "}:" + role
}

func nameOf(s timeout.Shard) string { return fmt.Sprintf("%s:%s:%d", s.Kind, s.Partition, s.N) }

func TestMain(m *testing.M) { testbedtest.Main(m) }
