package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// others returns the members but leader.
func others(c *testbed.EtcdCluster, leader *testbed.Etcd) []*testbed.Etcd {
	return slices.DeleteFunc(c.Nodes(), func(e *testbed.Etcd) bool { return e == leader })
}

func leader(t testing.TB, c *testbed.EtcdCluster) *testbed.Etcd {
	t.Helper()
	e, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Without a quorum nothing is granted, holders are notified in time, and with one again all
// continues.
func TestQuorumLost(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
		l, key := locker(t, client(t, strings.Join(c.Addrs(), ","))), rand.Text()
		lease := take(ctx, t, l, key)
		start := time.Now()
		paused := others(c, leader(t, c))
		for _, e := range paused {
			harm(t, e.Pause)
		}
		unavailable(ctx, t, l, key)
		unavailable(ctx, t, l, rand.Text())
		awaitEnd(t, lease)
		if d := time.Since(start); d > 4*ttl {
			t.Errorf("the lease ended after %v, its TTL is %v", d, ttl)
		}
		for _, e := range paused {
			harm(t, e.Resume)
		}
		testbedtest.Eventually(t, "the lock", func() bool {
			next, err := l.TryAcquire(ctx, key)
			return err == nil && next.Release(ctx) == nil
		})
	})
}

// clustered runs histories on three members that are harmed one after the other.
func clustered(t *testing.T, f func(t testing.TB, tr trial, c *testbed.EtcdCluster)) {
	t.Helper()
	faults := testbedtest.Size(1, 6)
	cfg := dlocktest.TrialConfig{Keys: 3, Faulty: true, Unnoticed: faults == 1}
	histories(t, cfg, func(t testing.TB, tr trial) {
		c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
		tr.Load.Hold, tr.Least = ttl/5, 20
		clients := tr.clients(t, 6, strings.Join(c.Addrs(), ","))
		tr.During(t, clients, func() {
			for range faults {
				dlocktest.Pace(t, tr.Between(ttl/3, ttl))
				f(t, tr, c)
			}
			dlocktest.Pace(t, time.Duration(testbedtest.Size(1, 4))*ttl/2)
		})
	})
}

// TestHistoryWithPausedLeaders pauses the leader, for longer than a TTL too. When it resumes, it still acts as leader
// for a moment. It has leases revoked that were renewed by the next leader (etcd issue 15247). No client can prevent
// that: holders lose their locks and are notified, and their fencing tokens are out of date.
func TestHistoryWithPausedLeaders(t *testing.T) {
	t.Parallel()
	clustered(t, func(t testing.TB, tr trial, c *testbed.EtcdCluster) {
		old := leader(t, c)
		harm(t, old.Pause)
		dlocktest.Pace(t, tr.Between(ttl/3, 2*ttl))
		tr.LoseAll(func() {
			harm(t, old.Resume)
			dlocktest.Pace(t, ttl/2)
		})
	})
}

// A holder whose lease is revoked by a former leader is notified of it at once, and not only at
// its next renewal.
func TestHolderIsNotifiedOfALossUnderAFormerLeader(t *testing.T) {
	testbedtest.FullSize(t)
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
		l := configured(t, client(t, strings.Join(c.Addrs(), ",")), etcdlock.Config{TTL: 2 * ttl})
		lost := 0
		for range 8 {
			old := leader(t, c)
			key := rand.Text()
			lease := take(ctx, t, l, key)
			harm(t, old.Pause)
			dlocktest.Pace(t, 3*ttl)
			held := lease.Err() == nil // with the next leader
			harm(t, old.Resume)
			next, err := l.Acquire(ctx, key+"-other") // etcd is at work
			for ; err != nil && ctx.Err() == nil; next, err = l.Acquire(ctx, key+"-other") {
				t.Log(err)
			}
			release(ctx, t, next)
			dlocktest.Pace(t, ttl/2)
			in, err := l.Inspect(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if held && !in.Held {
				lost++
				if !errors.Is(lease.Err(), dlock.ErrLost) {
					t.Errorf("etcd has dropped the lease, and its holder does not know")
				}
			}
			_ = lease.Release(ctx) // it may be lost
		}
		t.Logf("%d of 8 leases were revoked by a leader of before", lost)
	})
}

// TestHistoryOfKilledLeaders kills the leader, which restarts with its data.
func TestHistoryOfKilledLeaders(t *testing.T) {
	t.Parallel()
	clustered(t, func(t testing.TB, tr trial, c *testbed.EtcdCluster) {
		old := leader(t, c)
		harm(t, old.Kill)
		dlocktest.Pace(t, tr.Between(0, ttl))
		harm(t, func() error { return old.Restart(t.Context()) })
	})
}

// TestHistoryOfLostQuorums stops two of three members for longer than a TTL.
func TestHistoryOfLostQuorums(t *testing.T) {
	t.Parallel()
	clustered(t, func(t testing.TB, tr trial, c *testbed.EtcdCluster) {
		paused := c.Nodes()[1:]
		for _, e := range paused {
			harm(t, e.Pause)
		}
		dlocktest.Pace(t, tr.Between(ttl/3, 2*ttl))
		for _, e := range paused {
			harm(t, e.Resume)
		}
	})
}

// An address leads to another cluster, and connections to the former member stay open. That member is in a minority now,
// and keeps them. The next requests reach the new cluster.
func TestMemberInAMinorityIsLeft(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	former, next := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{}), testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	member := former.Nodes()[0]
	proxy := testbedtest.StartProxy(t, member.Addr())
	l, key := locker(t, client(t, proxy.Addr())), rand.Text()
	testbedtest.Eventually(t, "a lock at the former member", func() bool { // an attempt may time out on a busy machine
		lease, err := l.TryAcquire(ctx, key)
		return err == nil && lease.Release(ctx) == nil
	})
	proxy.Lead(next.Addr())
	for _, e := range others(former, member) {
		harm(t, e.Kill)
	}
	soon, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		lease, err := l.TryAcquire(ctx, key)
		if err == nil {
			lease.Release(ctx)
			return
		}
		if soon.Err() != nil {
			t.Fatal("no lock at the other cluster: ", err)
		}
	}
}
