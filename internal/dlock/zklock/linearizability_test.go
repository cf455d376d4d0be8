package zklock_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// trial is one history of a lock.
type trial struct{ *dlocktest.Trial }

// histories runs a trial.
func histories(t *testing.T, faulty bool, f func(t testing.TB, tr trial)) {
	t.Helper()
	testbedtest.Steady(t, func(t testing.TB) {
		cfg := dlocktest.TrialConfig{TTL: ttl, Keys: 3, Faulty: faulty, Unnoticed: true, Limit: time.Duration(testbedtest.Size(1, 5)) * time.Minute}
		dlocktest.RunTrial(t, cfg, func(t testing.TB, tr *dlocktest.Trial) {
			tr.Load.Permits = 1
			f(t, trial{tr})
		})
	})
}

func (tr trial) open(t testing.TB, addrs ...string) *dlocktest.HistoryClient {
	return tr.Locker(locker(t, session(t, addrs...), zklock.Config{}))
}

// queueOf is the node of the queue of key.
func queueOf(key string) string { return "/shop/locks/" + key }

// clients opens n clients, each with a session of its own.
func (tr trial) clients(t testing.TB, n int, addrs ...string) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.open(t, addrs...)
	}
	return all
}

// proxied opens n clients behind a proxy each.
func (tr trial) proxied(t testing.TB, n int, addr string) ([]*dlocktest.HistoryClient, []*testbed.Proxy) {
	t.Helper()
	clients, proxies := make([]*dlocktest.HistoryClient, n), make([]*testbed.Proxy, n)
	for i := range n {
		proxies[i] = testbedtest.StartProxy(t, addr)
		clients[i] = tr.open(t, proxies[i].Addr())
	}
	return clients, proxies
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	histories(t, false, func(t testing.TB, tr trial) {
		tr.WithoutFaults(t, tr.clients(t, 6, testbedtest.ZooKeeper(t)), testbedtest.Size(60, 600), 2)
	})
}

// TestHistoryOfLostReplies loses replies of every kind after the server has executed.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		clients, proxies := tr.proxied(t, 5, testbedtest.ZooKeeper(t))
		tr.LoseReplies(t, clients, proxies, testbedtest.Size(40, 400), func(_ int, p *testbed.Proxy) { p.DropReply("-lease-") })
	})
}

// TestHistoryOfBlackHoles cuts clients off, some for so long that their sessions
// expire, which they are notified when they reconnect.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		clients, proxies := tr.proxied(t, 4, testbedtest.ZooKeeper(t))
		tr.Load.Hold = ttl / 10
		tr.During(t, clients, func() {
			for range testbedtest.Size(3, 30) {
				p := proxies[tr.Random.IntN(len(proxies))]
				p.BlackHole()
				dlocktest.Pace(t, tr.Between(ttl/5, 3*ttl/2))
				if err := p.Pass(); err != nil {
					t.Error(err)
				}
				dlocktest.Pace(t, tr.Between(0, ttl/5))
			}
		})
	})
}

// TestHistoryOfDeletedNodes has an administrator delete nodes of holders and waiters.
func TestHistoryOfDeletedNodes(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		addr := testbedtest.ZooKeeper(t)
		admin := raw(t, addr)
		tr.Load.Hold = ttl / 30
		tr.During(t, tr.clients(t, 5, addr), func() {
			for range testbedtest.Size(30, 100) { // more take the check minutes
				dlocktest.Pace(t, tr.Between(0, ttl/30))
				queue := queueOf(tr.Load.Keys[tr.Random.IntN(len(tr.Load.Keys))])
				names, _, err := admin.Children(queue)
				if err != nil || len(names) == 0 {
					continue
				}
				tr.LoseAll(func() {
					if err := admin.Delete(queue+"/"+names[tr.Random.IntN(len(names))], -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
						t.Error(err)
					}
					dlocktest.Pace(t, ttl/100) // until the holder is notified of it
				})
			}
		})
	})
}

// TestHistoryOfExpiredSessions has sessions end while their processes live and are
// connected, with all that they hold and wait for.
func TestHistoryOfExpiredSessions(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		admin := raw(t, server.Addr())
		cfg := dlocktest.TrialConfig{TTL: ttl, Keys: 3, Faulty: true, Limit: 5 * time.Minute}
		dlocktest.RunTrial(t, cfg, func(t testing.TB, own *dlocktest.Trial) {
			tr := trial{own}
			tr.Load.Permits, tr.Load.Hold = 1, ttl/30
			expired, most := 0, testbedtest.Size(8, 80)
			tr.During(t, tr.clients(t, 5, server.Addr()), func() {
				for end := time.Now().Add(2 * time.Minute); expired < most && time.Now().Before(end); {
					dlocktest.Pace(t, tr.Between(ttl/100, ttl/20))
					queue := queueOf(tr.Load.Keys[tr.Random.IntN(len(tr.Load.Keys))])
					names, _, err := admin.Children(queue)
					if err != nil || len(names) == 0 {
						continue
					}
					_, stat, err := admin.Get(queue + "/" + names[tr.Random.IntN(len(names))])
					if err != nil {
						continue // it has been released
					}
					tr.LoseAll(func() {
						if server.Expire(t.Context(), stat.EphemeralOwner) == nil {
							expired++
						}
						dlocktest.Pace(t, ttl/30) // until the holder is notified of it
					})
				}
			})
			if expired < most {
				t.Errorf("only %d sessions have expired", expired)
			}
		})
	})
}

// TestHistoryOfRestarts kills the server, which restarts with its data.
func TestHistoryOfRestarts(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr trial) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		tr.During(t, tr.clients(t, 4, server.Addr()), func() {
			for range testbedtest.Size(1, 10) {
				dlocktest.Pace(t, tr.Between(ttl/10, ttl/3))
				if err := server.Kill(); err != nil {
					t.Error(err)
				}
				dlocktest.Pace(t, tr.Between(0, ttl/2))
				if err := server.Restart(t.Context()); err != nil {
					t.Error(err)
				}
			}
			dlocktest.Pace(t, ttl/3)
		})
	})
}

const holderServer = "SHOP_TEST_ZKLOCK_SERVER"

// TestHolderProcess is no test: it is the process that TestHistoryWithPausedHolders stops.
func TestHolderProcess(t *testing.T) {
	addr := os.Getenv(holderServer)
	if addr == "" {
		return
	}
	dlocktest.ServeHolder(t, locker(t, session(t, addr), zklock.Config{}))
}

// TestHistoryWithPausedHolders stops a process for longer than its session lasts,
// wherever it is. It resumes and considers leases valid that others have taken meanwhile; it
// must find out.
func TestHistoryWithPausedHolders(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		dlocktest.RunTrial(t, dlocktest.TrialConfig{TTL: ttl, Keys: 2, Faulty: true, Limit: 5 * time.Minute}, func(t testing.TB, tr *dlocktest.Trial) {
			addr := testbedtest.ZooKeeper(t)
			far := dlocktest.StartHolder(t, "TestHolderProcess", 8*ttl, holderServer+"="+addr)
			own := trial{tr}
			tr.PauseHolder(t, far, own.clients(t, 2, addr), testbedtest.Size(1, 20))
		})
	})
}
