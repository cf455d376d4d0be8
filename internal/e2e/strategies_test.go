package e2e_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

func TestWithoutRedisItsStrategiesAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, "--database", sqliteURL(t))
	for _, s := range []string{"redis", "redis-unfenced"} {
		answer := r.want(t, http.StatusUnprocessableEntity, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"`+s+`"}`)
		if !strings.Contains(answer, "strategy-unavailable") {
			t.Error(answer)
		}
	}
	r.want(t, http.StatusNotFound, "GET", "/api/v1/skus/a", "")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"conditional"}`)
}

// A lock service that lost its data and whose clock is behind issues low fences. The row refuses them until the
// counter is raised to the accepted token.
func TestFenceAheadOfTheLockService(t *testing.T) {
	t.Parallel()
	for strategy, flags := range map[string]func() []string{
		"redis": func() []string { return []string{"--redis", testbedtest.Redis(t)} },
		"redlock": func() []string {
			var urls []string
			for range 3 {
				urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
			}
			return []string{"--redlock", strings.Join(urls, ",")}
		},
		"sql": func() []string { return nil },
	} {
		t.Run(strategy, func(t *testing.T) {
			database := sqliteURL(t)
			r := start(t, append(flags(), "--database", database)...)
			sku := order.NewID() // tests share the Redis
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":5,"strategy":"`+strategy+`"}`)
			store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: database})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			ahead := dlock.Fence{Token: uint64(time.Now().Add(time.Hour).UnixMicro()), Owner: "before the data was lost"}
			request := &order.Request{TTL: time.Hour, Order: order.Order{
				ID: order.NewID(), CustomerID: "c1", Items: []order.Item{{SKU: sku, Quantity: 1}},
			}}
			claims := []stock.Claim{{SKU: sku, Update: stock.Fenced, Fence: ahead}}
			if err := store.Commit(t.Context(), &order.Batch{Claims: claims, Requests: []*order.Request{request}}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r.want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+sku+`"`, 1))
			}
			if code, out, _ := call(t, noEnv, "audit", "--database", database); code != 0 {
				t.Error(out)
			}
		})
	}
}

// Three instances that all have customers waiting get equally many leases of a SKU from lock services
// that are first come, first served. How many they get from the others is in the log, at full size.
// The ledger knows: each lease has a fence. Other tests wait meanwhile.
func TestCohortsShareTheLockFairly(t *testing.T) {
	alone(t) // with equal instances
	s := newStage(t)
	z := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
	e := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	args := []string{"--permits", "1000", "--zookeeper", z.Addr(), "--etcd", e.Addr()}
	fairly := map[string]bool{"redis-cohort": true, "zookeeper-cohort": true, "etcd-cohort": true}
	if full := testbedtest.Size(0, 1) == 1; full {
		var urls []string
		for range 3 {
			urls = append(urls, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
		}
		args = append(args, "--redlock", strings.Join(urls, ","))
		fairly["redlock-cohort"], fairly["sql-cohort"] = false, false
	}
	instances := s.three(t, args...)
	db := testbedtest.OpenSQL(t, s.database)
	for strategy, fair := range fairly {
		turns(t, instances, db, strategy, fair)
	}
}

// turns sells a SKU by a strategy at all instances, and counts the leases of each. A paused instance does not wait
// for its next lease, so others get more. Then turns counts again.
func turns(t *testing.T, instances [3]*instance, db *sql.DB, strategy string, fair bool) {
	t.Helper()
	for try := 1; ; try++ {
		sku := fmt.Sprint(strategy, "-", try)
		instances[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, `{"on_hand":1000000,"strategy":"`+strategy+`"}`)
		began := time.Now()
		var placed atomic.Int64
		var buyers sync.WaitGroup
		client := customers(t)
		most := int64(testbedtest.Size(1500, 30_000))
		for _, r := range instances {
			for range 16 {
				buyers.Go(func() {
					for placed.Add(1) <= most {
						if a := served(t.Context(), client, r.url, sku); a.status != http.StatusCreated {
							t.Error(a)
							return
						}
					}
				})
			}
		}
		buyers.Wait()
		leases := leasesOf(t, db, sku)
		high, low := 0, 1<<30
		for _, n := range leases {
			high, low = max(high, n), min(low, n)
		}
		t.Logf("%s: leases by instance %v, max/min %.2f; %d orders in %v", strategy, leases, float64(high)/float64(low), most, time.Since(began).Round(time.Millisecond))
		equal := len(leases) == len(instances) && 5*high <= 6*low
		if equal || !fair {
			return
		}
		if try == 4 {
			t.Errorf("%s: between %d and %d leases at %d instances, want no more than a fifth apart", strategy, low, high, len(leases))
			return
		}
	}
}

// leasesOf returns under how many leases each instance has sold a SKU.
func leasesOf(t *testing.T, db *sql.DB, sku string) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rows, err := db.QueryContext(ctx, "SELECT instance, COUNT(DISTINCT fence) FROM ledger WHERE sku = ? AND fence > 0 GROUP BY instance", sku)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	leases := make(map[string]int)
	for rows.Next() {
		var instance string
		var n int
		if err := rows.Scan(&instance, &n); err != nil {
			t.Fatal(err)
		}
		leases[instance] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(fmt.Errorf("leases of %s: %w", sku, err))
	}
	return leases
}
