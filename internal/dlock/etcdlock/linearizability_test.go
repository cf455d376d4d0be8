package etcdlock_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// trial is one history of a lock.
type trial struct{ *dlocktest.Trial }

// histories runs a trial.
func histories(t *testing.T, cfg dlocktest.TrialConfig, f func(t testing.TB, tr trial)) {
	t.Helper()
	cfg.TTL = ttl
	cfg.Limit = time.Duration(testbedtest.Size(1, 5)) * time.Minute // the load outlasts the faults
	testbedtest.Steady(t, func(t testing.TB) {
		dlocktest.RunTrial(t, cfg, func(t testing.TB, own *dlocktest.Trial) { f(t, trial{own}) })
	})
}

func (tr trial) open(t testing.TB, cli *clientv3.Client) *dlocktest.HistoryClient {
	return tr.Locker(locker(t, cli))
}

// clients opens n clients, each with connections of its own.
func (tr trial) clients(t testing.TB, n int, addr string) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.open(t, client(t, addr))
	}
	return all
}

// proxied opens n clients behind a proxy each.
func (tr trial) proxied(t testing.TB, n int, addr string) ([]*dlocktest.HistoryClient, []*testbed.Proxy) {
	t.Helper()
	clients, proxies := make([]*dlocktest.HistoryClient, n), make([]*testbed.Proxy, n)
	for i := range n {
		proxies[i] = testbedtest.StartProxy(t, addr)
		clients[i] = tr.open(t, client(t, proxies[i].Addr()))
	}
	return clients, proxies
}

func harm(t testing.TB, f func() error) {
	t.Helper()
	if err := f(); err != nil {
		t.Error(err)
	}
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	histories(t, dlocktest.TrialConfig{Keys: 3}, func(t testing.TB, tr trial) {
		tr.WithoutFaults(t, tr.clients(t, 7, testbedtest.Etcd(t)), testbedtest.Size(40, 400), 2)
	})
}

// TestHistoryOfLostReplies breaks connections on which the server has executed
// requests that take places or read queues: all of them have the prefix in them.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	histories(t, dlocktest.TrialConfig{Keys: 3, Faulty: true}, func(t testing.TB, tr trial) {
		clients, proxies := tr.proxied(t, 5, testbedtest.Etcd(t))
		tr.LoseReplies(t, clients, proxies, testbedtest.Size(60, 600), func(n int, p *testbed.Proxy) {
			pattern := "shop/"
			if n%3 == 0 {
				pattern = "" // any request: a grant, a renewal, or a release
			}
			p.DropReply(pattern)
		})
	})
}

// TestHistoryOfBlackHoles cuts clients off at random phases of their renewals and
// waits, for less and for more than a TTL. Each holder must know before the next one
// is in, whatever arrives late.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	histories(t, dlocktest.TrialConfig{Keys: 3, Faulty: true}, func(t testing.TB, tr trial) {
		clients, proxies := tr.proxied(t, 5, testbedtest.Etcd(t))
		var links [][]*testbed.Proxy
		for _, p := range proxies {
			links = append(links, []*testbed.Proxy{p})
		}
		tr.BlackHoles(t, append(clients, tr.clients(t, 2, testbedtest.Etcd(t))...), links, testbedtest.Size(1, 30))
	})
}

// TestHistoryOfRevokedLeases has somebody revoke leases of holders and of waiters, and delete
// their keys.
func TestHistoryOfRevokedLeases(t *testing.T) {
	t.Parallel()
	histories(t, dlocktest.TrialConfig{Keys: 3, Faulty: true}, func(t testing.TB, tr trial) {
		addr := testbedtest.Etcd(t)
		admin := client(t, addr)
		tr.Load.Hold = ttl / 10
		tr.During(t, tr.clients(t, 6, addr), func() {
			for i := range testbedtest.Size(24, 100) { // the search for an order is exponential: of some 60 with 40 one took over two minutes
				dlocktest.Pace(t, tr.Between(5*time.Millisecond, 60*time.Millisecond))
				in := inOrder(t, admin, lockQueue(tr.Load.Keys[tr.Random.IntN(3)])).Kvs
				if len(in) == 0 {
					continue
				}
				kv := in[tr.Random.IntN(min(2, len(in)))]
				tr.LoseAll(func() {
					if i%2 == 0 {
						_, _ = admin.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)) // it may have been released
					} else if _, err := admin.Delete(t.Context(), string(kv.Key)); err != nil {
						t.Error(err)
					}
				})
			}
		})
	})
}

// TestHistoryOfRestarts kills the server again and again, and it restarts with its data.
func TestHistoryOfRestarts(t *testing.T) {
	t.Parallel()
	histories(t, dlocktest.TrialConfig{Keys: 3, Faulty: true}, func(t testing.TB, tr trial) {
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		tr.Load.Hold = ttl / 10
		tr.During(t, tr.clients(t, 5, server.Addr()), func() {
			for range testbedtest.Size(2, 20) {
				dlocktest.Pace(t, tr.Between(ttl/10, ttl/3))
				harm(t, server.Kill)
				dlocktest.Pace(t, tr.Between(0, ttl/3))
				harm(t, func() error { return server.Restart(t.Context()) })
			}
			dlocktest.Pace(t, ttl/2)
		})
	})
}
