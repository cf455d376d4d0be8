package redisindex_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

const partition = "base"

// entry schedules one id.
func put(t *testing.T, x *redisindex.Index, kind, id string, at time.Time) {
	t.Helper()
	if err := x.Schedule(t.Context(), kind, partition, []timeout.Entry{{ID: id, At: at}}); err != nil {
		t.Fatal(err)
	}
}

// claimAll claims from every shard once.
func claimAll(t *testing.T, x *redisindex.Index, kind string) (all []timeout.Entry) {
	t.Helper()
	for _, s := range x.Shards(kind, partition) {
		c, err := x.Claim(t.Context(), s, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Timers...)
	}
	return all
}

func TestNewChecksTheClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts redis.Options
		cfg  redisindex.Config
		ok   bool
	}{
		"as required":       {redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}, redisindex.Config{}, true},
		"defaults":          {redis.Options{}, redisindex.Config{}, false},
		"repeats":           {redis.Options{ContextTimeoutEnabled: true}, redisindex.Config{}, false},
		"ignores deadlines": {redis.Options{MaxRetries: -1}, redisindex.Config{}, false},
		"negative shards":   {redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}, redisindex.Config{Shards: -1}, false},
		"absurd shards":     {redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true}, redisindex.Config{Shards: 1 << 20}, false},
	} {
		rdb := redis.NewClient(&c.opts)
		if _, err := redisindex.New(rdb, c.cfg); (err == nil) != c.ok {
			t.Errorf("%s: New = %v", name, err)
		}
		rdb.Close()
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	if _, err := redisindex.New(cluster, redisindex.Config{}); err == nil {
		t.Error("New takes a cluster client that repeats commands")
	}
}

// Operators and other versions depend on these keys and values.
func TestDataInRedis(t *testing.T) {
	t.Parallel()
	rdb := client(t, testbedtest.Redis(t))
	x, kind := index(t, rdb, redisindex.Config{Shards: 1}), rand.Text()
	s := timeout.Shard{Kind: kind, Partition: partition}
	put(t, x, kind, "later", time.UnixMilli(253402300799999)) // the last moment of the year 9999
	put(t, x, kind, "now", time.UnixMilli(1763640000123))
	got := claimAll(t, x, kind)
	if len(got) != 1 {
		t.Fatalf("claimed %v, want one", got)
	}
	if members := rdb.ZRange(t.Context(), keyOf(s, "pending"), 0, -1).Val(); len(members) != 1 || members[0] != "later" {
		t.Errorf("pending = %q, want what was not due", members)
	}
	if score := rdb.ZScore(t.Context(), keyOf(s, "pending"), "later").Val(); int64(score) != 253402300799999 {
		t.Errorf("score = %f, want the moment with all of its digits", score)
	}
	for _, want := range []bool{true, false} {
		if granted, err := x.GrantPass(t.Context(), kind, partition, time.Hour); granted != want || err != nil {
			t.Errorf("GrantPass = %t, %v; want %t", granted, err, want)
		}
	}
	for role, want := range map[string]time.Duration{"pending": 24 * time.Hour, "pass": time.Hour} {
		if left := rdb.PTTL(t.Context(), keyOf(s, role)).Val(); left < want-time.Minute || left > want {
			t.Errorf("%s expires in %v, want %v", role, left, want)
		}
	}
}

// A server that has lost its scripts is sent them again, within the same call.
func TestScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	rdb := client(t, server.URL())
	x := index(t, rdb, redisindex.Config{})
	for range 3 {
		put(t, x, "kind", "x", time.UnixMilli(1))
		if got := claimAll(t, x, "kind"); len(got) != 1 {
			t.Errorf("claimed %v, want one", got)
		}
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// scheduled schedules one id that is due until that succeeds.
func scheduled(t *testing.T, x *redisindex.Index, kind, id string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		err := x.Schedule(t.Context(), kind, partition, []timeout.Entry{{ID: id, At: time.UnixMilli(1)}})
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("Schedule = %v", err)
		}
	}
}

// Scripts continue when a silent network, which has ended earlier ones, has recovered.
func TestScriptsContinueAfterASilentNetwork(t *testing.T) {
	t.Parallel()
	proxy := testbedtest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(testbedtest.Redis(t), "redis://"), "/0"))
	rdb := redis.NewClient(&redis.Options{
		Addr: proxy.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: -1, WriteTimeout: -1,
	})
	defer rdb.Close()
	x := index(t, rdb, redisindex.Config{})
	kind := rand.Text()
	scheduled(t, x, kind, "first")
	proxy.BlackHole()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := x.Schedule(ctx, kind, partition, []timeout.Entry{{ID: "x", At: time.UnixMilli(1)}}); err == nil {
				t.Error("Schedule succeeds without a network")
			}
		})
	}
	wg.Wait()
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	scheduled(t, x, kind, "x")
	direct := index(t, client(t, testbedtest.Redis(t)), redisindex.Config{})
	if got := claimAll(t, direct, kind); len(got) != 2 {
		t.Errorf("claimed %v, want both", got)
	}
}

// A caller whose context ends waits no longer, whatever the network does.
func TestSilentNetworkEndsWithTheContext(t *testing.T) {
	t.Parallel()
	proxy := testbedtest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(testbedtest.Redis(t), "redis://"), "/0"))
	x := index(t, client(t, "redis://"+proxy.Addr()), redisindex.Config{})
	kind := rand.Text()
	scheduled(t, x, kind, "first")
	proxy.BlackHole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := x.Schedule(ctx, kind, partition, []timeout.Entry{{ID: "x", At: time.UnixMilli(1)}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Schedule = %v, want the end of its context", err)
	}
	if _, err := x.Claim(ctx, x.Shards(kind, partition)[0], 1); err == nil {
		t.Error("Claim succeeds without a network")
	}
}
