package redisbus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/broadcasttest"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

const channel = "shop:broadcast:{all}"

// failover has two buses speak while f replaces the server, until both hear again.
func failover(t testing.TB, one, two *redisbus.Bus, f func()) {
	t.Helper()
	start(t, one)
	start(t, two)
	history := broadcasttest.NewHistory(one, two)
	for i := range 2 {
		history.Watch(t, i, 0, "*")
		history.Watch(t, i, 0, "b")
	}
	s := subscribe(t, one, "nothing")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	history.Speak(ctx, &wg, time.Millisecond, "a", "b")
	f()
	awaitMissed(t, s, broadcast.Connected)
	cancel()
	wg.Wait()
	history.Check(t)
}

func TestBusBehindSentinel(t *testing.T) {
	t.Parallel()
	group := testbedtest.StartSentinel(t, testbed.SentinelConfig{})
	t.Run("suite", func(t *testing.T) {
		testbedtest.FullSize(t)
		broadcasttest.Run(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return sentinelClient(tb, group)
		}))
	})
	t.Run("failover", func(t *testing.T) {
		testbedtest.FullSize(t) // a master that stalls is replaced in the same way
		testbedtest.Steady(t, func(t testing.TB) {
			failover(t, bus(t, sentinelClient(t, group), redisbus.Config{}), bus(t, sentinelClient(t, group), redisbus.Config{}), func() {
				master, err := group.Master(t.Context())
				if err == nil {
					err = master.Kill()
				}
				if err == nil {
					err = group.WaitForFailover(t.Context(), master)
				}
				if err == nil {
					err = master.Restart(t.Context())
				}
				if err == nil {
					err = group.WaitReady(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	})
	// The old master comes back from a pause, and does not know yet that it is none.
	t.Run("stalled", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			failover(t, bus(t, sentinelClient(t, group), redisbus.Config{}), bus(t, sentinelClient(t, group), redisbus.Config{}), func() {
				master, err := group.Master(t.Context())
				if err == nil {
					err = master.Pause()
				}
				if err == nil {
					err = group.WaitForFailover(t.Context(), master)
				}
				if err == nil {
					err = master.Resume()
				}
				if err == nil {
					err = group.WaitReady(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	})
}

func TestBusOnCluster(t *testing.T) {
	t.Parallel()
	c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
	t.Run("suite", func(t *testing.T) {
		broadcasttest.Run(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return clusterClient(tb, c)
		}))
	})
	t.Run("sharded", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			b := bus(t, clusterClient(t, c), redisbus.Config{})
			start(t, b)
			subscribe(t, b, "*")
			for _, node := range c.Nodes() {
				rdb := client(t, node.URL())
				plain := rdb.PubSubNumSub(t.Context(), channel).Val()[channel]
				sharded := rdb.PubSubShardNumSub(t.Context(), channel).Val()[channel]
				master, err := c.MasterOf(t.Context(), channel)
				if err != nil {
					t.Fatal(err)
				}
				want := int64(0)
				if node == master {
					want = 1
				}
				if plain != 0 || sharded != want {
					t.Errorf("%s: %d listen to the channel and %d to the shard, want 0 and %d", node.Addr(), plain, sharded, want)
				}
			}
		})
	})
	t.Run("slot moves", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			failover(t, bus(t, clusterClient(t, c), redisbus.Config{}), bus(t, clusterClient(t, c), redisbus.Config{}), func() { move(t, c) })
		})
	})
	t.Run("failover", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			failover(t, bus(t, clusterClient(t, c), redisbus.Config{}), bus(t, clusterClient(t, c), redisbus.Config{}), func() {
				old, err := c.KillMasterOf(t.Context(), channel)
				if err == nil {
					t.Cleanup(func() {
						ctx := context.WithoutCancel(t.Context())
						if err := errors.Join(old.Restart(ctx), c.WaitReady(ctx)); err != nil {
							t.Error(err)
						}
					})
					err = c.WaitForFailover(t.Context(), channel, old)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	})
}

// move gives the slot of the channel to another master.
func move(t testing.TB, c *testbed.Cluster) {
	t.Helper()
	from, err := c.MasterOf(t.Context(), channel)
	if err != nil {
		t.Fatal(err)
	}
	var to *testbed.Redis
	for _, node := range c.Nodes() {
		role := client(t, node.URL()).Do(t.Context(), "ROLE")
		if parts, err := role.Slice(); node != from && err == nil && parts[0] == "master" {
			to = node
		}
	}
	slot := client(t, from.URL()).ClusterKeySlot(t.Context(), channel).Val()
	id := client(t, to.URL()).ClusterMyID(t.Context()).Val()
	for _, node := range []*testbed.Redis{to, from} {
		if err := client(t, node.URL()).Do(t.Context(), "CLUSTER", "SETSLOT", slot, "NODE", id).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
