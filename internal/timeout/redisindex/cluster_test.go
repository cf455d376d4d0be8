package redisindex_test

import (
	"fmt"
	"testing"
	"time"

	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

// Six shards are two on each of three masters, and all keys of a shard, and its
// channel, are in one slot.
func TestShardsSpreadOverMasters(t *testing.T) {
	testbedtest.FullSize(t)
	c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
	x := index(t, clusterClient(t, c), redisindex.Config{Shards: 6})
	for _, kind := range []string{"order", "hold", "a.b-c_d"} {
		count := map[string]int{}
		for _, s := range x.Shards(kind, lane) {
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

// While a master fails over its shards are away; then all timers that Redis had
// are lent, and messages arrive again.
func TestClusterFailover(t *testing.T) {
	testbedtest.FullSize(t)
	c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
	x, from := index(t, clusterClient(t, c), redisindex.Config{}), index(t, clusterClient(t, c), redisindex.Config{})
	s := x.Shards("kind", lane)[0]
	id, wake, at := idFor(t, from, s), x.Wake(s), farAway()
	running(t, x)
	expectWake(t, from, s, id, wake, &at)
	const n = 1000
	var hints []timeout.Hint
	for i := range n {
		hints = append(hints, timeout.Hint{ID: fmt.Sprint("t", i), At: time.UnixMilli(1)})
	}
	if _, err := x.Schedule(t.Context(), "kind", lane, false, hints); err != nil {
		t.Fatal(err)
	}
	master, err := c.MasterOf(t.Context(), keyOf(s, "pending"))
	if err != nil {
		t.Fatal(err)
	}
	// The replica has everything before the master dies: what it lacks is the reconciler's.
	if err := client(t, "redis://"+master.Addr()).Wait(t.Context(), 1, 10*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for end := time.Now().Add(60 * time.Second); len(got) < n; {
		for _, s := range x.Shards("kind", lane) {
			claim, err := x.Claim(t.Context(), s, 500, 10*time.Second)
			if err != nil {
				continue
			}
			for _, timer := range claim.Timers {
				got[timer.ID] = true
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d timers are lent after a failover", len(got), n)
		}
	}
	expectWake(t, from, s, id, wake, &at)
}
