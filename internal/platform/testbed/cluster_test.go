package testbed_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestClusterFailover(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		cluster := testbedtest.StartCluster(t, testbed.ClusterConfig{})
		c := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: cluster.Addrs(), ContextTimeoutEnabled: true,
			// A refused connection does not make the client ask who the new master is; only
			// the age of what it knows does.
			ClusterStateReloadInterval: 500 * time.Millisecond,
		})
		defer c.Close()
		keys := []string{"a", "b", "c", "d", "e", "f"}
		owners := map[*testbed.Redis]bool{}
		for _, key := range keys {
			keep(t, c, key, "before")
			master, err := cluster.MasterOf(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			owners[master] = true
		}
		if len(owners) != 3 {
			t.Errorf("%d keys are on %d masters, want 3", len(keys), len(owners))
		}

		for range 2 { // And back: what has been restarted must be able to take over.
			start := time.Now()
			old, err := cluster.KillMasterOf(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := cluster.WaitForFailover(t.Context(), "a", old); err != nil {
				t.Fatal(err)
			}
			t.Logf("failover after %v", time.Since(start).Round(time.Millisecond))
			if master, err := cluster.MasterOf(t.Context(), "a"); master == old || err != nil {
				t.Errorf("the master is still the killed one: %v", err)
			}
			for _, key := range keys {
				keep(t, c, key, "after")
			}
			start = time.Now()
			if err := old.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := cluster.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("ready again after %v", time.Since(start).Round(time.Millisecond))
		}
	})
}

// Sharded channels are what makes a push cheap in a cluster; they follow their slot.
func TestClusterShardedChannel(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		cluster := testbedtest.StartCluster(t, testbed.ClusterConfig{})
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sub := c.SSubscribe(ctx, "{a}")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		if n, err := c.SPublish(ctx, "{a}", "hello").Result(); n != 1 || err != nil {
			t.Fatalf("published to %d, %v", n, err)
		}
		if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
			t.Errorf("received %v, %v", m, err)
		}
	})
}
