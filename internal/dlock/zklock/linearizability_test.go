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

// contender is something to be taken and released, whose history is checked.
type contender struct {
	name   string
	places string // is in every request that names a place of a queue
	queue  func(key string) string
	config func(cfg dlocktest.TrialConfig) dlocktest.TrialConfig
	open   func(t testing.TB, h *dlocktest.History, addrs ...string) *dlocktest.HistoryClient
}

// contenders run through every history of this package.
func contenders() []contender {
	return []contender{{
		name: "lock", places: "-lease-",
		queue:  func(key string) string { return "/shop/locks/" + key },
		config: func(cfg dlocktest.TrialConfig) dlocktest.TrialConfig { return cfg },
		open: func(t testing.TB, h *dlocktest.History, addrs ...string) *dlocktest.HistoryClient {
			return h.Locker(locker(t, session(t, addrs...), zklock.Config{}))
		},
	}, {
		name: "rw", places: "/queue/",
		queue: func(key string) string { return "/shop/rwlocks/" + key + "/queue" },
		config: func(cfg dlocktest.TrialConfig) dlocktest.TrialConfig {
			model := dlocktest.RWModel()
			cfg.Model = &model
			return cfg
		},
		open: func(t testing.TB, h *dlocktest.History, addrs ...string) *dlocktest.HistoryClient {
			return h.RW(rwLocker(t, session(t, addrs...), zklock.Config{}))
		},
	}}
}

// trial is one history of a contender.
type trial struct {
	contender
	*dlocktest.Trial
}

// histories runs a trial for each contender.
func histories(t *testing.T, faulty bool, f func(t testing.TB, tr *trial)) {
	t.Helper()
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				cfg := dlocktest.TrialConfig{TTL: ttl, Keys: 3, Faulty: faulty, Unnoticed: true, Limit: time.Duration(testbedtest.Size(1, 5)) * time.Minute}
				dlocktest.RunTrial(t, c.config(cfg), func(t testing.TB, tr *dlocktest.Trial) {
					tr.Load.Permits = 1
					if c.name == "rw" {
						tr.Load.Permits = dlocktest.RWPermits
					}
					f(t, &trial{c, tr})
				})
			})
		})
	}
}

// clients opens n clients, each with a session of its own.
func (tr *trial) clients(t testing.TB, n int, addrs ...string) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.open(t, tr.History, addrs...)
	}
	return all
}

// proxied opens n clients behind a proxy each.
func (tr *trial) proxied(t testing.TB, n int, addr string) ([]*dlocktest.HistoryClient, []*testbed.Proxy) {
	t.Helper()
	clients, proxies := make([]*dlocktest.HistoryClient, n), make([]*testbed.Proxy, n)
	for i := range n {
		proxies[i] = testbedtest.StartProxy(t, addr)
		clients[i] = tr.open(t, tr.History, proxies[i].Addr())
	}
	return clients, proxies
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	histories(t, false, func(t testing.TB, tr *trial) {
		tr.WithoutFaults(t, tr.clients(t, 6, testbedtest.ZooKeeper(t)), testbedtest.Size(60, 600), 2)
	})
}

// TestHistoryOfLostReplies loses replies of every kind after the server has executed.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr *trial) {
		clients, proxies := tr.proxied(t, 5, testbedtest.ZooKeeper(t))
		tr.LoseReplies(t, clients, proxies, testbedtest.Size(40, 400), func(_ int, p *testbed.Proxy) { p.DropReply(tr.places) })
	})
}

// TestHistoryOfBlackHoles cuts clients off, some for so long that their sessions
// expire, which they are notified when they reconnect.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	histories(t, true, func(t testing.TB, tr *trial) {
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
	histories(t, true, func(t testing.TB, tr *trial) {
		if tr.name == "rw" {
			t.Skip("a reader that lost its node shares its fence with those who did not")
		}
		addr := testbedtest.ZooKeeper(t)
		admin := raw(t, addr)
		tr.Load.Hold = ttl / 30
		tr.During(t, tr.clients(t, 5, addr), func() {
			for range testbedtest.Size(30, 100) { // more take the check minutes
				dlocktest.Pace(t, tr.Between(0, ttl/30))
				queue := tr.queue(tr.Load.Keys[tr.Random.IntN(len(tr.Load.Keys))])
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
			tr := &trial{contenders()[0], own}
			tr.Load.Permits, tr.Load.Hold = 1, ttl/30
			expired, most := 0, testbedtest.Size(8, 80)
			tr.During(t, tr.clients(t, 5, server.Addr()), func() {
				for end := time.Now().Add(2 * time.Minute); expired < most && time.Now().Before(end); {
					dlocktest.Pace(t, tr.Between(ttl/100, ttl/20))
					queue := tr.queue(tr.Load.Keys[tr.Random.IntN(len(tr.Load.Keys))])
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
	histories(t, true, func(t testing.TB, tr *trial) {
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
			own := &trial{contenders()[0], tr}
			tr.PauseHolder(t, far, own.clients(t, 2, addr), testbedtest.Size(1, 20))
		})
	})
}
