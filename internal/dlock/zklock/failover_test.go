package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestHistoryWithPausedLeaders pauses the leader of three servers until the others have elected another. When it
// resumes, it still considers itself the leader.
func TestHistoryWithPausedLeaders(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		tr.During(t, tr.clients(t, 5, servers.Addrs()...), func() {
			for range testbedtest.Size(1, 5) {
				dlocktest.Pace(t, tr.Between(ttl/5, ttl))
				leader, err := servers.Leader(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := leader.Pause(); err != nil {
					t.Error(err)
				}
				dlocktest.Pace(t, tr.Between(ttl/2, 2*ttl))
				if err := leader.Resume(); err != nil {
					t.Error(err)
				}
			}
			dlocktest.Pace(t, ttl)
		})
	})
}

// TestHistoryOfLostQuorums pauses two servers of three for longer than a session lasts. Nothing is granted then, and
// all holders have been notified.
func TestHistoryOfLostQuorums(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		dlocktest.RunTrial(t, dlocktest.TrialConfig{TTL: ttl, Keys: 3, Faulty: true, Limit: 5 * time.Minute}, func(t testing.TB, own *dlocktest.Trial) {
			tr := trial{own}
			tr.Load.Permits, tr.Load.Hold = 1, ttl/30
			tr.During(t, tr.clients(t, 5, servers.Addrs()...), func() {
				for range testbedtest.Size(1, 5) {
					dlocktest.Pace(t, tr.Between(ttl/5, ttl))
					paused := tr.Random.Perm(len(servers.Nodes()))[:2]
					for _, at := range paused {
						harm(t, servers.Nodes()[at].Pause)
					}
					dlocktest.Pace(t, ttl)
					before := tr.Grants()
					dlocktest.Pace(t, tr.Between(ttl/5, ttl/2))
					if n := tr.Grants() - before; n > 0 {
						t.Errorf("%d grants without a majority", n)
					}
					for _, at := range paused {
						harm(t, servers.Nodes()[at].Resume)
					}
					dlocktest.Pace(t, ttl)
				}
			})
		})
	})
}

func harm(t testing.TB, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

// TestHistoryOfPartedFollowers pauses a follower of three servers, and so cuts its clients off.
func TestHistoryOfPartedFollowers(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		var clients []*dlocktest.HistoryClient
		for _, addr := range servers.Addrs() {
			clients = append(clients, tr.clients(t, 2, addr)...)
		}
		tr.During(t, clients, func() {
			for i := range 6 {
				dlocktest.Pace(t, tr.Between(0, ttl/3))
				follower := servers.Nodes()[i%3]
				leader, err := servers.Leader(t.Context())
				if err != nil || leader == follower {
					continue
				}
				if err := follower.Pause(); err != nil {
					t.Error(err)
				}
				dlocktest.Pace(t, tr.Between(ttl/3, 2*ttl))
				if err := follower.Resume(); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// TestNoQuorumNoLock: without a majority no lock is granted, and those that are held
// are lost.
func TestNoQuorumNoLock(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		servers := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		l := locker(t, session(t, servers.Addrs()...), zklock.Config{})
		held := acquire(t, l, "held")
		for _, node := range servers.Nodes()[:2] {
			if err := node.Pause(); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-held.Done():
			if !errors.Is(held.Err(), dlock.ErrLost) {
				t.Error(held.Err())
			}
		case <-time.After(ttl):
			t.Error("the holder continues without a majority")
		}
		for _, take := range []func(context.Context, string) (*dlock.Lease, error){l.TryAcquire, l.Acquire} {
			start := time.Now()
			if _, err := take(t.Context(), "other"); err == nil || errors.Is(err, dlock.ErrHeld) {
				t.Errorf("without a majority: %v", err)
			}
			if d := time.Since(start); d > 3*ttl {
				t.Errorf("without a majority an attempt took %v", d)
			}
		}
		var wg sync.WaitGroup
		for _, node := range servers.Nodes()[:2] {
			wg.Go(func() {
				if err := node.Resume(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for end := time.Now().Add(20 * ttl); ; {
			lease, err := l.TryAcquire(t.Context(), "held")
			if err == nil {
				_ = lease.Release(t.Context())
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	})
}
