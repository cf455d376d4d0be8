package rediscluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/rediscluster"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

var names = []string{"a", "b", "c"}

// launch starts three members, and returns one that watches.
func launch(t testing.TB, url string) (presences []*cluster.Presence, seen *clustertest.Watcher[cluster.View]) {
	t.Helper()
	group := rand.Text()
	for _, name := range names {
		i := instance(t, url, group, func(error) {})
		presences = append(presences, clustertest.Join(t, i, cluster.Member{Name: name, Address: name}))
	}
	seen = clustertest.Follow(t, instance(t, url, group, func(error) {}).Members)
	seen.Until(t, "all", clustertest.Lists(names...))
	return presences, seen
}

// The server is unavailable with and without its data, and for longer than leases last. A list of those that have rejoined
// already looks as if the others had died. It is not used before all could have rejoined.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]testbed.RedisConfig{"keeps its data": {AppendOnly: true}, "loses its data": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				server := testbedtest.StartRedis(t, cfg)
				presences, seen := launch(t, server.URL())
				outage := func(what string, begin, end func() error, away time.Duration) {
					check(t, begin())
					seen.Until(t, "that it is stale", func(v cluster.View, err error) bool {
						return errors.Is(err, cluster.ErrStale) && len(v.Members) == len(names)
					})
					time.Sleep(away) // the outage
					start := time.Now()
					check(t, end())
					seen.Until(t, "all", clustertest.Lists(names...))
					t.Logf("%s: right again after %v", what, time.Since(start))
				}
				restart := func() error { return server.Restart(t.Context()) }
				outage("killed", server.Kill, restart, 0)
				outage("killed for long", server.Kill, restart, 3*ttl/2)
				outage("stopped for long", server.Pause, server.Resume, 3*ttl/2)
				for _, view := range seen.Fresh()[1:] { // but the first, when they were joining
					if !clustertest.Lists(names...)(view, nil) {
						t.Errorf("taken for all: %q", clustertest.Names(view))
					}
				}
				for _, p := range presences {
					if p.Err() != nil {
						t.Error(p.Err())
					}
				}
			})
		})
	}
}

// TestMemberDiesWithTheData: those that do not come back after a loss of data are given up.
func TestMemberDiesWithTheData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		presences, seen := launch(t, server.URL())
		check(t, server.Kill())
		left := make(chan error, 1)
		go func() { left <- presences[1].Leave(t.Context()) }()
		if err := <-left; err == nil {
			t.Error("left without a server")
		}
		check(t, server.Restart(t.Context()))
		start := time.Now()
		seen.Until(t, "those that live", clustertest.Lists("a", "c"))
		t.Logf("given up after %v", time.Since(start))
	})
}

// TestNothingIsLeft when all have left, but the epoch; and every entry that is there expires.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb, group := client(t, testbedtest.Redis(t)), rand.Text()
		c, err := rediscluster.New(rdb, rediscluster.Config{TTL: ttl, Prefix: prefix(group)})
		check(t, err)
		base := prefix(group) + "{members}"
		p := clustertest.Join(t, c, cluster.Member{Name: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Announce(ctx, "e", cluster.Leader{Name: "a"}) }()
		keys := func() []string {
			all, err := rdb.Keys(t.Context(), prefix(group)+"*").Result()
			check(t, err)
			slices.Sort(all)
			return all
		}
		clustertest.Wait(t, "four keys", func() bool { return len(keys()) == 4 })
		for _, key := range keys() {
			if d := rdb.PTTL(t.Context(), key).Val(); d <= 0 {
				t.Errorf("%s has TTL %v", key, d)
			}
		}
		cancel()
		check(t, <-done)
		check(t, p.Leave(t.Context()))
		clustertest.Wait(t, "one key", func() bool { return slices.Equal(keys(), []string{base + ":state"}) })
	})
}

// TestRefusedEndsAreRepeated has a member leave and a leader resign while Redis refuses connections for a moment.
func TestRefusedEndsAreRepeated(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		address, err := neturl.Parse(testbedtest.Redis(t))
		check(t, err)
		rdb, group := client(t, address.String()), rand.Text()
		proxy := testbedtest.StartProxy(t, address.Host)
		address.Host = proxy.Addr()
		c, err := rediscluster.New(client(t, address.String()), rediscluster.Config{TTL: 10 * time.Minute, Timeout: time.Minute, Prefix: prefix(group)})
		check(t, err)
		p := clustertest.Join(t, c, cluster.Member{Name: "a"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 2)
		go func() { done <- c.Announce(ctx, "e", cluster.Leader{Name: "a"}) }()
		count := func() int {
			all, err := rdb.Keys(t.Context(), prefix(group)+"*").Result()
			check(t, err)
			return len(all)
		}
		clustertest.Wait(t, "four keys", func() bool { return count() == 4 })
		proxy.Refuse()
		cancel()
		go func() { done <- p.Leave(t.Context()) }()
		time.Sleep(100 * time.Millisecond) // enough for a first attempt of each
		check(t, proxy.Pass())
		check(t, <-done)
		check(t, <-done)
		if n := count(); n != 1 { // the epoch
			t.Errorf("%d keys are left", n)
		}
	})
}

// TestStormIsMerged has a hundred members join within a second, all of which watch.
func TestStormIsMerged(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		const n = 100
		var instances []cluster.Membership
		for range n {
			c, err := rediscluster.New(client(t, server.URL()), rediscluster.Config{TTL: ttl})
			check(t, err)
			instances = append(instances, c)
		}
		rdb := client(t, server.URL())
		seen, requests := clustertest.Storm(t, instances, func() int { return commands(t, rdb, "evalsha") })
		limit := n * (2 + int(seen/(ttl/3)) + 1 + int(seen/(400*time.Millisecond)) + 1)
		t.Logf("%d scripts may be run in that time; naively it were %d", limit, n*n)
		if requests > limit {
			t.Errorf("%d scripts", requests)
		}
	})
}

// TestQuietWatcherGetsNoLists: a watcher that has the latest list gets no other.
func TestQuietWatcherGetsNoLists(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		_, seen := launch(t, server.URL())
		rdb := client(t, server.URL())
		lists, looks := commands(t, rdb, "zrange"), commands(t, rdb, "evalsha")
		clustertest.Wait(t, "looks", func() bool { return commands(t, rdb, "evalsha") > looks+10 })
		if now := commands(t, rdb, "zrange"); now != lists {
			t.Errorf("%d lists were sent, and nothing has changed", now-lists)
		}
		if _, steps, err := seen.Now(); err != nil || steps > 3 {
			t.Errorf("%d steps, %v", steps, err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		patient := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer patient.Close()
		if _, err := rediscluster.New(patient, rediscluster.Config{}); err == nil {
			t.Error("a client that ignores deadlines is accepted")
		}
		rdb := client(t, "redis://127.0.0.1:"+strconv.Itoa(1)+"/0")
		for _, cfg := range []rediscluster.Config{{Prefix: "a{b"}, {TTL: time.Millisecond}, {Poll: time.Microsecond}} {
			if _, err := rediscluster.New(rdb, cfg); err == nil {
				t.Errorf("%+v is accepted", cfg)
			}
		}
	})
}

// TestRedisCluster has the members in one slot of a Cluster, and announcements in any.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		group := testbedtest.StartCluster(t, testbed.ClusterConfig{})
		url := "redis+cluster://" + strings.Join(group.Addrs(), ",")
		presences, seen := launch(t, url)
		check(t, presences[0].Leave(t.Context()))
		seen.Until(t, "the others", clustertest.Lists("b", "c"))
		i := instance(t, url, rand.Text(), func(error) {})
		e := clustertest.Elect(t, i, "key", "a")
		term := clustertest.Campaign(t, e)
		leaders := clustertest.Follow(t, e.Observe)
		leaders.Until(t, "the leader", clustertest.Leads(term.Leader()))
		check(t, term.Resign(t.Context()))
		leaders.Until(t, "nobody", clustertest.Leads(cluster.Leader{}))
	})
}
