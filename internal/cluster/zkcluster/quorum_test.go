package zkcluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// noQuorumNoLeader stops two of three servers. The term ends, nobody is elected, and lists and configuration are
// reported stale. All recover with the servers.
func noQuorumNoLeader(t testing.TB, servers *testbed.ZooKeeperEnsemble, f *fleet) {
	settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: f.instances[0]})
	check(t, err)
	permits, err := cluster.Define(settings, cluster.Key[int]{Name: "permits", Default: 64, Parse: strconv.Atoi})
	check(t, err)
	_, err = permits.Set(t.Context(), 8, 0)
	check(t, err)
	check(t, settings.Load(t.Context()))
	leader := f.record.Await(t, cluster.Leader{})
	for _, node := range servers.Nodes()[:2] {
		check(t, node.Pause())
	}
	start := time.Now()
	clustertest.Wait(t, "end of the term", func() bool { return !f.record.Ended(leader).IsZero() })
	d := f.record.Ended(leader).Sub(start)
	f.stale(t)
	t.Logf("without a majority the term ends after %v, and all is stale after %v", d, time.Since(start))
	// The leader of the servers answers for five ticks more, until it finds itself alone.
	if d > time.Second+ttl {
		t.Errorf("the term ends only after %v", d)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*ttl)
	defer cancel()
	if term, err := clustertest.Elect(t, f.instances[0], f.group, "x").Campaign(short); err == nil {
		t.Errorf("elected without a majority: %+v", term.Leader())
	}
	if err := settings.Load(t.Context()); !errors.Is(err, cluster.ErrStale) {
		t.Errorf("Load = %v", err)
	}
	if value, version := permits.Get(); value != 8 || version != 1 {
		t.Errorf("permits = %d, version %d", value, version)
	}
	if _, err := permits.Set(short, 9, 1); err == nil || errors.Is(err, cluster.ErrConflict) {
		t.Errorf("Set = %v", err)
	}
	for _, node := range servers.Nodes()[:2] {
		check(t, node.Resume())
	}
	f.settled(t, leader)
	f.works(t, servers.Addrs()...)
}

// TestCutOffFollowerIsStale stops the leader of servers that wait for it for a long time.
// A follower answers readings meanwhile as if nothing had happened.
func TestCutOffFollowerIsStale(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{Settings: []string{"syncLimit=100"}})
		leader, err := servers.Leader(t.Context())
		check(t, err)
		group := rand.Text()
		var seen []*clustertest.Watcher[cluster.View]
		for _, node := range servers.Nodes() {
			if node == leader {
				continue
			}
			i := instance(t, session(t, node.Addr()), group, func(error) {})
			seen = append(seen, clustertest.Follow(t, i.Members))
		}
		for _, w := range seen {
			w.Until(t, "nobody", clustertest.Lists())
		}
		check(t, leader.Pause())
		start := time.Now()
		for _, w := range seen {
			w.Until(t, "that it is stale", func(_ cluster.View, err error) bool { return errors.Is(err, cluster.ErrStale) })
		}
		d := time.Since(start)
		t.Logf("stale is said after %v", d)
		if d > 2*ttl { // the servers wait for 20 s
			t.Errorf("stale is said only after %v", d)
		}
		check(t, leader.Resume())
		for _, w := range seen {
			w.Until(t, "nobody", clustertest.Lists())
		}
	})
}

// stormIsMerged has a hundred members join within a second, all of which watch.
// Naively each of them would read the list again after each join, and each member.
func stormIsMerged(t testing.TB, server *testbed.ZooKeeper) {
	const n = 100
	var instances []cluster.Membership
	for range n {
		c, err := zkcluster.New(session(t, server.Addr()), zkcluster.Config{Prefix: "/storm"})
		check(t, err)
		instances = append(instances, c)
	}
	seen, requests := clustertest.Storm(t, instances, func() int { return received(t, server) })
	// Each makes ten to join, one per gap and two more to look, and now and then a sync.
	limit := n * (10 + int(seen/(100*time.Millisecond)) + 2 + int(seen/(ttl/6)) + 1)
	t.Logf("%d requests may be made in that time; naively it were %d", limit, 2*n*n)
	if requests > limit {
		t.Errorf("%d requests", requests)
	}
}

// received is how many requests the server has received.
func received(t testing.TB, server *testbed.ZooKeeper) int {
	t.Helper()
	answer, err := server.Ask(t.Context(), "srvr")
	check(t, err)
	for line := range strings.Lines(answer) {
		if text, ok := strings.CutPrefix(line, "Received: "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			check(t, err)
			return n
		}
	}
	t.Fatalf("srvr says %q", answer)
	return 0
}

// TestStraysAreReportedOnce by one instance, whatever it watches.
func TestStraysAreReportedOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		var mu sync.Mutex
		reported := map[string]int{}
		group := rand.Text()
		i := store(t, session(t, addr), group, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported[err.Error()]++
		})
		for range 2 {
			clustertest.Follow(t, i.Members).Until(t, "nobody", func(v cluster.View, err error) bool { return err == nil })
			clustertest.Follow(t, func(ctx context.Context) iter.Seq2[cluster.Leader, error] { return i.Leaders(ctx, "e") }).
				Until(t, "nobody", clustertest.Leads(cluster.Leader{}))
		}
		n := strays(t, raw(t, addr), prefix(group)+"/members") + strays(t, raw(t, addr), prefix(group)+"/elections/e")
		clustertest.Wait(t, "strays", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(reported) == n
		})
		clustertest.Join(t, i, cluster.Member{Name: "a"})
		clustertest.Follow(t, i.Members).Until(t, "a", clustertest.Lists("a"))
		mu.Lock()
		defer mu.Unlock()
		for text, times := range reported {
			if times != 1 {
				t.Errorf("reported %d times: %s", times, text)
			}
		}
	})
}
