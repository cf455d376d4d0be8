package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Three instances sell by redis-cohort through faults, while customers buy and cancel. A leader is stopped beyond its
// lease and continues. Another is killed while it holds the lease. Redis loses its data, and replies to COMMIT are
// lost. Customers who get no response, or that the service is busy, retry elsewhere with the same key. The last
// response to each customer agrees with the database, and units that no order has can still be bought.
func TestCohortsThroughFaults(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	cohortsThroughFaults(t, s, "redis-cohort", empty(t, s.redis))
}

// The same with the other lock services. Redlock loses its data on every server. ZooKeeper and etcd crash and return
// with their data. The rows of SQL are deleted.
func TestOtherCohortsThroughFaults(t *testing.T) {
	testbedtest.FullSize(t)
	for strategy, prepare := range map[string]func(t *testing.T, s stage) (harm func(context.Context) error, flags []string){
		"redlock-cohort": func(t *testing.T, _ stage) (func(context.Context) error, []string) {
			t.Helper()
			var urls []string
			for range 3 {
				urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
			}
			return empty(t, urls...), []string{"--redlock", strings.Join(urls, ",")}
		},
		"zookeeper-cohort": func(t *testing.T, _ stage) (func(context.Context) error, []string) {
			t.Helper()
			z := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
			return crashing(z.Kill, z.Restart), []string{"--zookeeper", z.Addr()}
		},
		"etcd-cohort": func(t *testing.T, _ stage) (func(context.Context) error, []string) {
			t.Helper()
			e := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
			return crashing(e.Kill, e.Restart), []string{"--etcd", e.Addr()}
		},
		"sql-cohort": func(t *testing.T, s stage) (func(context.Context) error, []string) {
			t.Helper()
			db := testbedtest.OpenSQL(t, s.database)
			return func(ctx context.Context) error {
				_, err := db.ExecContext(ctx, "DELETE FROM leases")
				return err
			}, nil
		},
	} {
		t.Run(strategy, func(t *testing.T) {
			s := newStage(t)
			harm, flags := prepare(t, s)
			cohortsThroughFaults(t, s, strategy, harm, flags...)
		})
	}
}

// cohortsThroughFaults sells by a strategy, whose lock service harm does harm to.
func cohortsThroughFaults(t *testing.T, s stage, strategy string, harm func(context.Context) error, flags ...string) {
	t.Helper()
	all, proxy := threeBehindProxy(t, s, flags...)
	const units = 1_000_000
	all[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", fmt.Sprintf(`{"on_hand":%d,"strategy":%q}`, units, strategy))

	sale := &faultySale{client: customers(t), kept: make(map[string]bool)}
	for _, r := range all {
		sale.urls = append(sale.urls, r.url)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	buyers := sale.begin(ctx, t)
	db := testbedtest.OpenSQL(t, s.database)
	sells := func(what string) {
		t.Helper()
		before := sale.count()
		testbedtest.Eventually(t, "orders after "+what, func() bool { return sale.count() > before+100 })
	}
	sells("the beginning")

	// A leader that does not know that its lease is over.
	held := stopHolder(t, db, all[1])
	testbedtest.Eventually(t, "another lease", func() bool { return soldUnder(t, db) > held })
	sells("a leader has stopped")
	all[1].signal(t, syscall.SIGCONT)
	sells("it continues")

	// A leader that never comes back.
	stopHolder(t, db, all[0])
	all[0].kill()
	sale.forget(all[0].url)
	sells("a leader was killed")

	// The lock service forgets who has the lease, or is unavailable.
	times := testbedtest.Size(2, 5)
	for range times {
		surely(t, func() error { return harm(ctx) })
		sells("harm to the lock service")
	}

	// MariaDB has committed, and the instance does not receive it.
	for n := range times {
		proxy.DropReply("\x03COMMIT")
		testbedtest.Eventually(t, "a lost reply", func() bool { return proxy.Dropped() > n })
		sells("a lost reply")
	}

	stop()
	buyers.Wait()
	if a := audited(t, books(t, s.database), "a"); a.Open != int64(len(sale.kept)) {
		t.Errorf("customers have %d units, the books say %d: %q", len(sale.kept), a.Open, a.Broken())
	}
	t.Logf("%s: %d units sold, %d cancelled", strategy, len(sale.kept), sale.cancelled)
	if sale.cancelled == 0 {
		t.Error("nobody cancelled")
	}
	r := all[1]
	r.want(t, http.StatusCreated, "POST", "/api/v1/orders", oneUnit)
}

// threeBehindProxy starts three instances. The database of the third is behind the proxy.
func threeBehindProxy(t *testing.T, s stage, flags ...string) (all []*instance, proxy *testbed.Proxy) {
	t.Helper()
	proxy, proxied := behind(t, s.database)
	for i, database := range []string{s.database, s.database, proxied} {
		args := []string{"--instance", fmt.Sprint("shop-", i+1), "--database", database, "--redis", s.redis, "--permits", "1000"}
		all = append(all, spawn(t, append(args, flags...)...))
	}
	return all, proxy
}

// begin starts 24 buyers, who buy until ctx ends.
func (s *faultySale) begin(ctx context.Context, t *testing.T) *sync.WaitGroup {
	t.Helper()
	buyers := new(sync.WaitGroup)
	t.Cleanup(buyers.Wait)
	for b := range 24 {
		buyers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := s.buy(t.Context(), fmt.Sprint("b", b, "-", n)); err != nil {
					if t.Context().Err() == nil { // else the test has failed, and they do not finish
						t.Error(err)
					}
					return
				}
			}
		})
	}
	return buyers
}

// soldUnder returns the latest fence under which units of the SKU a were sold.
func soldUnder(t *testing.T, db *sql.DB) (fence int64) {
	t.Helper()
	surely(t, func() error {
		return db.QueryRowContext(t.Context(), "SELECT fence FROM skus WHERE sku = 'a'").Scan(&fence)
	})
	return fence
}

// stopHolder stops an instance while it has the lease of the SKU a, and returns the latest fence. That it
// has the lease shows in that nobody sells under another one for long.
func stopHolder(t *testing.T, db *sql.DB, s *instance) (fence int64) {
	t.Helper()
	testbedtest.Eventually(t, "a leader that is stopped", func() bool {
		s.signal(t, syscall.SIGSTOP)
		fence = soldUnder(t, db)
		for end := time.Now().Add(leaseTTL / 4); time.Now().Before(end); <-time.After(time.Millisecond) {
			if soldUnder(t, db) != fence {
				s.signal(t, syscall.SIGCONT)
				return false
			}
		}
		return true
	})
	return fence
}
