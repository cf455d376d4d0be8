package zkcluster_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// fleet is some instances that are members, lead, write and watch.
type fleet struct {
	group     string
	instances []clustertest.Instance
	presences []*cluster.Presence
	members   []*clustertest.Watcher[cluster.View]
	leaders   []*clustertest.Watcher[cluster.Leader]
	record    *clustertest.Record
	stop      func()
}

var fleetNames = []string{"a", "b", "c"}

// launch starts three instances. Each has all of the servers.
func launch(t testing.TB, addrs ...string) *fleet {
	t.Helper()
	f := &fleet{group: rand.Text(), record: clustertest.NewRecord()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var leading sync.WaitGroup
	for _, name := range fleetNames {
		i := instance(t, session(t, addrs...), f.group, func(err error) { t.Log(name, "reports:", err) })
		f.instances = append(f.instances, i)
		f.presences = append(f.presences, clustertest.Join(t, i, cluster.Member{Name: name, Address: name}))
		e := clustertest.Elect(t, i, f.group, name)
		f.members = append(f.members, clustertest.Follow(t, i.Members))
		f.leaders = append(f.leaders, clustertest.Follow(t, e.Observe))
		leading.Go(func() { f.record.Lead(ctx, t, e, name) })
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		leading.Wait()
	})
	t.Cleanup(f.stop)
	f.settled(t, cluster.Leader{})
	return f
}

// settled waits until all see all, and a leader, in a later term than that of after.
func (f *fleet) settled(t testing.TB, after cluster.Leader) {
	t.Helper()
	start := time.Now()
	f.record.Await(t, after)
	t.Logf("a leader after %v", time.Since(start))
	f.listed(t, cluster.Leader.Elected)
}

// listed waits until all see all, and a leader that is fine.
func (f *fleet) listed(t testing.TB, fine func(cluster.Leader) bool) {
	t.Helper()
	start := time.Now()
	for k := range f.members {
		f.members[k].Until(t, "all members", clustertest.Lists(fleetNames...))
	}
	listed := time.Since(start)
	for k := range f.leaders {
		f.leaders[k].Until(t, "a leader", func(l cluster.Leader, err error) bool { return err == nil && fine(l) })
	}
	t.Logf("all members after %v, the leader after %v", listed, time.Since(start))
	for _, p := range f.presences {
		if p.Err() != nil {
			t.Error(p.Err())
		}
	}
}

// stale waits until every sequence has reported that it may be out of date.
func (f *fleet) stale(t testing.TB) {
	t.Helper()
	for k := range f.members {
		f.members[k].Until(t, "that the members are stale", func(v cluster.View, err error) bool {
			return errors.Is(err, cluster.ErrStale) && len(v.Members) == len(fleetNames)
		})
		f.leaders[k].Until(t, "that the leader is stale", func(_ cluster.Leader, err error) bool {
			return errors.Is(err, cluster.ErrStale)
		})
	}
}

// works fails the test unless a member that joins is seen by all, soon.
func (f *fleet) works(t testing.TB, addrs ...string) {
	t.Helper()
	start := time.Now()
	p := clustertest.Join(t, instance(t, session(t, addrs...), f.group, func(error) {}), cluster.Member{Name: "z"})
	for k := range f.members {
		f.members[k].Until(t, "one more", clustertest.Lists(append(slices.Clone(fleetNames), "z")...))
	}
	t.Logf("a session was opened, and one more member seen by all, after %v", time.Since(start))
	check(t, p.Leave(t.Context()))
	for k := range f.members {
		f.members[k].Until(t, "all members", clustertest.Lists(fleetNames...))
	}
}

// TestServer does to one server what is done to it.
func TestServer(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
	t.Run("StormIsMerged", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			stormIsMerged(t, server)
		})
	})
	t.Run("IsRestarted", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f := launch(t, server.Addr())
			mended(t, server)
			for range testbedtest.Size(1, 5) {
				check(t, server.Kill())
				f.stale(t)
				check(t, server.Restart(t.Context()))
				f.settled(t, cluster.Leader{})
				f.works(t, server.Addr())
			}
			f.record.Check(t, 1)
		})
	})
	// With its data it loses the count of the transactions, so that fences begin again,
	// and the register refuses what leaders write.
	t.Run("LosesItsData", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f := launch(t, server.Addr())
			mended(t, server)
			before, _, _ := f.leaders[0].Now()
			check(t, server.RestartEmpty(t.Context()))
			f.listed(t, func(l cluster.Leader) bool { return l.Elected() && !l.Equal(before) })
			f.works(t, server.Addr())
		})
	})
}

// mended has servers run again after the test, whatever it has done to them.
func mended(t testing.TB, servers ...*testbed.ZooKeeper) {
	t.Helper()
	t.Cleanup(func() {
		for _, s := range servers {
			if s.PID() == 0 {
				check(t, s.Restart(context.WithoutCancel(t.Context())))
			} else {
				check(t, s.Resume())
			}
		}
	})
}

// TestEnsemble does to three servers what is done to them.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
	t.Run("LeaderIsStopped", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f := launch(t, servers.Addrs()...)
			mended(t, servers.Nodes()...)
			for range testbedtest.Size(1, 5) {
				stopped, err := servers.Leader(t.Context())
				check(t, err)
				start := time.Now()
				check(t, stopped.Pause())
				clustertest.Wait(t, "another leader of the servers", func() bool {
					next, err := servers.Leader(t.Context())
					return err == nil && next != stopped
				})
				f.settled(t, cluster.Leader{})
				f.works(t, servers.Addrs()...)
				t.Logf("all is well %v after the leader of the servers was stopped", time.Since(start))
				check(t, stopped.Resume())
				killed, err := servers.Leader(t.Context())
				check(t, err)
				start = time.Now()
				check(t, killed.Kill())
				f.works(t, servers.Addrs()...)
				f.settled(t, cluster.Leader{})
				t.Logf("all is well %v after it was killed", time.Since(start))
				check(t, killed.Restart(t.Context()))
			}
			f.stop()
			f.record.Check(t, 1)
		})
	})
	t.Run("NoQuorumNoLeader", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f := launch(t, servers.Addrs()...)
			mended(t, servers.Nodes()...)
			noQuorumNoLeader(t, servers, f)
			f.stop()
			f.record.Check(t, 2)
		})
	})
}
