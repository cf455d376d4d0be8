package sqllock_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// clients returns n clients with a pool each.
func (s store) clients(t testing.TB, tr *dlocktest.Trial, n int) []*dlocktest.HistoryClient {
	t.Helper()
	all := make([]*dlocktest.HistoryClient, n)
	for i := range all {
		all[i] = tr.Locker(s.locker(t, sqllock.Config{TTL: ttl}))
	}
	return all
}

// proxied returns n clients behind a proxy each.
func (s store) proxied(t testing.TB, tr *dlocktest.Trial, n int) ([]*dlocktest.HistoryClient, []*testbed.Proxy) {
	t.Helper()
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	clients, proxies := make([]*dlocktest.HistoryClient, n), make([]*testbed.Proxy, n)
	upstream := u.Host
	for i := range n {
		proxies[i] = testbedtest.StartProxy(t, upstream)
		u.Host = proxies[i].Addr()
		own := s
		own.address = u.String()
		clients[i] = own.clients(t, tr, 1)[0]
	}
	return clients, proxies
}

// faulty is a trial with faults. Its load outlasts the faults at full size too. In a small run all may go unnoticed.
func faulty(keys int) dlocktest.TrialConfig {
	return dlocktest.TrialConfig{
		TTL: ttl, Keys: keys, Faulty: true, Unnoticed: testbedtest.Size(0, 1) == 0,
		Limit: time.Duration(testbedtest.Size(1, 5)) * time.Minute,
	}
}

func TestHistoryWithoutFaults(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB) store{
		"mariadb":           func(t testing.TB) store { return mariaDB(testbedtest.Database(t)) },
		"mariadb otherwise": mariaDBOtherwise,
		"sqlite":            func(t testing.TB) store { return processes(t, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				s := open(t)
				s.create(t)
				dlocktest.RunTrial(t, dlocktest.TrialConfig{TTL: ttl, Keys: 3}, func(t testing.TB, tr *dlocktest.Trial) {
					tr.WithoutFaults(t, s.clients(t, tr, 5), testbedtest.Size(40, 400), testbedtest.Size(1, 3))
				})
			})
		})
	}
}

// TestHistoryOfLostReplies loses replies of every kind after the server has executed.
func TestHistoryOfLostReplies(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := mariaDB(testbedtest.Database(t))
		s.create(t)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			clients, proxies := s.proxied(t, tr, 5)
			tr.LoseReplies(t, clients, proxies, testbedtest.Size(60, 600), func(_ int, p *testbed.Proxy) { p.DropReply("leases") })
		})
	})
}

// TestHistoryOfBlackHoles cuts clients off at random phases of their renewals and
// waits, for less and for more than a TTL. Each holder must know before the next one
// is in, whatever arrives late.
func TestHistoryOfBlackHoles(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := mariaDB(testbedtest.Database(t))
		s.create(t)
		dlocktest.RunTrial(t, faulty(4), func(t testing.TB, tr *dlocktest.Trial) {
			clients, proxies := s.proxied(t, tr, 5)
			var links [][]*testbed.Proxy
			for _, p := range proxies {
				links = append(links, []*testbed.Proxy{p})
			}
			tr.BlackHoles(t, append(clients, s.clients(t, tr, 2)...), links, testbedtest.Size(2, 30))
		})
	})
}

// TestHistoryOfKilledConnections has the server end connections, whatever is on its
// way on them.
func TestHistoryOfKilledConnections(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := mariaDB(testbedtest.Database(t))
		admin := s.create(t)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			tr.During(t, s.clients(t, tr, 5), func() {
				for range testbedtest.Size(60, 600) {
					var id int64
					err := admin.QueryRowContext(t.Context(), "SELECT id FROM information_schema.processlist "+
						"WHERE db = DATABASE() AND id <> CONNECTION_ID() ORDER BY RAND() LIMIT 1").Scan(&id)
					if err == nil {
						_, _ = admin.ExecContext(t.Context(), "KILL "+strconv.FormatInt(id, 10)) // it may be gone by itself
					}
					dlocktest.Pace(t, tr.Between(5*time.Millisecond, 50*time.Millisecond))
				}
			})
		})
	})
}

// TestHistoryWithAPausedServer pauses the server for less and for more than a TTL, and for 20 s at full size. It also
// kills the server, which forgets no lease, because it has flushed all that it acknowledged.
func TestHistoryWithAPausedServer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
		s := mariaDB(server.URL())
		s.create(t)
		dlocktest.RunTrial(t, faulty(3), func(t testing.TB, tr *dlocktest.Trial) {
			tr.Load.Hold, tr.Least = ttl/2, 20
			tr.During(t, s.clients(t, tr, 5), func() {
				for i := range testbedtest.Size(3, 12) {
					dlocktest.Pace(t, tr.Between(ttl/4, ttl/2))
					if i%3 == 2 {
						harm(t, server.Kill)
					} else {
						harm(t, server.Pause)
					}
					dlocktest.Pace(t, tr.Between(0, time.Duration(1+i%2)*ttl))
					if i%3 == 2 {
						harm(t, func() error { return server.Restart(t.Context()) })
					} else {
						harm(t, server.Resume)
					}
				}
				if long := testbedtest.Size(0, 20); long > 0 {
					harm(t, server.Pause)
					dlocktest.Pace(t, time.Duration(long)*time.Second)
					harm(t, server.Resume)
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
