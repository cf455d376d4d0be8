package redisindex_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"example.com/shop/internal/timeout/timeouttest"
)

// TestCluster has one cluster for all cases; the last one kills a master.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := testbedtest.StartCluster(t)
	t.Run("suite", func(t *testing.T) {
		timeouttest.RunIndex(t, harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return clusterClient(tb, c)
		}))
	})
	t.Run("shards spread over masters", func(t *testing.T) { shardsSpreadOverMasters(t, c) })
	t.Run("moved slots", func(t *testing.T) { movedSlots(t, c) })
	t.Run("failover", func(t *testing.T) { clusterFailover(t, c) })
}

// shardsSpreadOverMasters expects two of six shards on each of three masters, and all keys of a
// shard, and its channel, in one slot.
func shardsSpreadOverMasters(t *testing.T, c *testbed.Cluster) {
	t.Helper()
	x := index(t, clusterClient(t, c), redisindex.Config{Shards: 6})
	for _, kind := range []string{"order", "hold", "a.b-c_d"} {
		count := map[string]int{}
		for _, s := range x.Shards(kind, partition) {
			master, err := c.MasterOf(t.Context(), keyOf(s, "pending"))
			if err != nil {
				t.Fatal(err)
			}
			count[master.Addr()]++
		}
		for addr, n := range count {
			if n != 2 || len(count) != 3 {
				t.Errorf("%s: %d of 6 shards are on %s", kind, n, addr)
			}
		}
	}
}

// movedSlots moves the slot of a shard, and with it the shard's channel. Messages arrive again.
func movedSlots(t *testing.T, c *testbed.Cluster) {
	t.Helper()
	x, from := index(t, clusterClient(t, c), redisindex.Config{}), index(t, clusterClient(t, c), redisindex.Config{})
	s := x.Shards("kind", partition)[0]
	id, wake, at := idFor(t, from, s), x.Wake(s), farAway()
	running(t, x)
	expectWake(t, from, s, id, wake, &at)
	if _, _, err := c.MoveSlots(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	expectWake(t, from, s, id, wake, &at)
}

// clusterFailover kills a master: its shards are away meanwhile. Then all timers that Redis had
// are claimed, and messages arrive again.
func clusterFailover(t *testing.T, c *testbed.Cluster) {
	t.Helper()
	x, from := index(t, clusterClient(t, c), redisindex.Config{}), index(t, clusterClient(t, c), redisindex.Config{})
	s := x.Shards("kind", partition)[0]
	id, wake, at := idFor(t, from, s), x.Wake(s), farAway()
	running(t, x)
	expectWake(t, from, s, id, wake, &at)
	const n = 1000
	var entries []timeout.Entry
	for i := range n {
		entries = append(entries, timeout.Entry{ID: fmt.Sprint("t", i), At: time.UnixMilli(1)})
	}
	if err := x.Schedule(t.Context(), "kind", partition, entries); err != nil {
		t.Fatal(err)
	}
	master, err := c.MasterOf(t.Context(), keyOf(s, "pending"))
	if err != nil {
		t.Fatal(err)
	}
	// The replica has everything before the master dies: what it lacks comes with the next look-ahead pass.
	if err := client(t, "redis://"+master.Addr()).Wait(t.Context(), 1, 10*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for end := time.Now().Add(60 * time.Second); len(got) < n; {
		for _, s := range x.Shards("kind", partition) {
			claim, err := x.Claim(t.Context(), s, 500)
			if err != nil {
				continue
			}
			for _, timer := range claim.Timers {
				got[timer.ID] = true
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d timers are claimed after a failover", len(got), n)
		}
	}
	expectWake(t, from, s, id, wake, &at)
}
