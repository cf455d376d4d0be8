package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// balancer sends orders to those instances that are in turn.
type balancer struct {
	next atomic.Int64

	mu   sync.RWMutex
	urls []string
}

func (b *balancer) url() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.urls[int(b.next.Add(1))%len(b.urls)]
}

func (b *balancer) set(urls ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.urls = urls
}

// ready returns the next instance whose /readyz returns 200.
func (b *balancer) ready(ctx context.Context, probes *http.Client) (url string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		url = b.url()
		if a := ask(ctx, probes, http.MethodGet, url+"/readyz", ""); a.err == nil && a.status == http.StatusOK {
			break
		}
	}
	return url
}

// forgotten is less than the lease of a timer: an order is that late if an instance had claimed it and stopped without
// releasing it.
const forgotten = 28 * time.Second

// roll is the replacement of three instances, one after the other.
type roll struct {
	database   string
	strategies []string // each sells a SKU of its name
	old, later func(t *testing.T, name string) *instance
	back       bool // in the end, an old one comes back
}

// underLoad replaces three instances while orders come in and expire. Customers obey /readyz, and notice nothing while the machine runs. If
// the machine is paused, customers may be asked to retry, and a late order makes the test run once more.
func underLoad(t *testing.T, prepare func(t *testing.T) roll) {
	t.Helper()
	for try := 1; ; try++ {
		var latest, stood time.Duration
		ok := t.Run(fmt.Sprint("try-", try), func(t *testing.T) { latest, stood = prepare(t).run(t) })
		switch {
		case !ok || latest <= forgotten:
			return
		case stood == 0 || try == 3:
			t.Fatalf("an order expired %v late, as if an instance that stopped had kept it; the machine was paused for %v", latest, stood)
		}
	}
}

// run returns how late the latest order was, and for how long the machine was paused.
func (r roll) run(t *testing.T) (latest, stood time.Duration) {
	t.Helper()
	started := 0
	start := func(by func(*testing.T, string) *instance) *instance {
		started++
		return by(t, fmt.Sprint("shop-", started))
	}
	nodes := []*instance{start(r.old), start(r.old), start(r.old)}
	for _, strategy := range r.strategies {
		nodes[0].want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+strategy, `{"on_hand":1000000,"strategy":"`+strategy+`"}`)
	}
	stalls := detectStalls(t)
	client, noticed := noticing(t)
	noticed.permits = true // one that has just begun may have none yet
	b, probes := new(balancer), customers(t)
	b.set(nodes[0].url, nodes[1].url, nodes[2].url)

	var group sync.WaitGroup
	var rolling atomic.Bool
	rolling.Store(true)
	orders := make([]atomic.Int64, len(r.strategies))
	for i, strategy := range slices.Repeat(r.strategies, 2) {
		group.Go(func() {
			for rolling.Load() {
				key := order.NewID()
				place := func() answer {
					return certain(t.Context(), client, b.ready(t.Context(), probes), strategy, "Idempotency-Key", key)
				}
				a := insist(place)
				for tries := 0; a.err != nil && stalls.total() > 0 && tries < 5; tries++ { // it was ready, and is gone after a pause
					a = insist(place)
				}
				if a.err != nil || a.status != http.StatusCreated {
					t.Error(a)
					return
				}
				orders[i%len(orders)].Add(1)
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	replace := func(i int, by func(*testing.T, string) *instance) {
		nodes[i].stop() // /readyz says so, and the balancer leaves it
		nodes[i].stopped(t)
		nodes[i] = start(by)
		b.set(nodes[0].url, nodes[1].url, nodes[2].url)
	}
	for range testbedtest.Size(1, 10) {
		for i := range nodes {
			replace(i, r.later)
		}
	}
	if r.back {
		replace(0, r.old)
		for range 10 {
			nodes[0].want(t, http.StatusCreated, "POST", "/api/v1/orders", strings.Replace(oneUnit, `"a"`, `"`+r.strategies[0]+`"`, 1))
		}
		orders[0].Add(10)
	}
	rolling.Store(false)
	group.Wait()
	noticed.judge(t, stalls)
	store := books(t, r.database)
	for i, strategy := range r.strategies {
		latest = max(latest, expired(t, store, strategy, int(orders[i].Load())))
		balanced(t, store, strategy)
	}
	t.Logf("%d instances were replaced; the latest order was %v late", started-3, latest)
	return latest, stalls.total()
}

// TestRollingRestartUnderLoad replaces instances by equal ones.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	underLoad(t, func(t *testing.T) roll {
		t.Helper()
		s := newStage(t)
		next := func(t *testing.T, name string) *instance {
			t.Helper()
			return start(t, append(s.flags, "--instance", name, "--order-ttl", "1s")...)
		}
		return roll{database: s.database, strategies: []string{"conditional"}, old: next, later: next}
	})
}

// TestRollingUpgradeUnderLoad replaces instances of a previous version, and one of them comes back.
func TestRollingUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	versions := map[string]func() (string, error){"0.1.0": version010}
	if testbedtest.Size(0, 1) == 1 {
		versions["schema 15"] = schema15
	}
	for name, build := range versions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			previous, err := build()
			if err != nil {
				t.Fatal(err)
			}
			underLoad(t, func(t *testing.T) roll {
				t.Helper()
				s := newStage(t)
				flags := slices.Concat(s.flags, []string{"--order-ttl", "1s", "--instance"})
				return roll{
					database: s.database, strategies: []string{"conditional", "redis-cohort"}, back: true,
					old: func(t *testing.T, name string) *instance {
						t.Helper()
						in := launchOf(t, previous, append(flags, name)...)
						in.listens(t)
						return in
					},
					later: func(t *testing.T, name string) *instance {
						t.Helper()
						return start(t, append(flags, name)...)
					},
				}
			})
		})
	}
}

// TestRollingChangeOfRedisAndTTL replaces instances by others with another Redis, other servers of Redlock and another TTL of orders. While both
// kinds run, each SKU has two locks. The row refuses the lower token, and the order is placed again under a higher one.
func TestRollingChangeOfRedisAndTTL(t *testing.T) {
	t.Parallel()
	underLoad(t, func(t *testing.T) roll {
		t.Helper()
		database := testbedtest.Database(t)
		kind := func(ttl string) func(t *testing.T, name string) *instance {
			redlock := strings.Join([]string{ownRedis(t), ownRedis(t), ownRedis(t)}, ",")
			flags := []string{"--database", database, "--redis", ownRedis(t), "--redlock", redlock, "--order-ttl", ttl, "--instance"}
			return func(t *testing.T, name string) *instance {
				t.Helper()
				return start(t, append(flags, ttl+"-"+name)...)
			}
		}
		t.Cleanup(func() { ttlsByInstance(t, database) })
		return roll{database: database, strategies: []string{"conditional", "lua", "redis-cohort", "redlock-cohort"}, old: kind("1s"), later: kind("2s")}
	})
}

// ttlsByInstance fails the test unless each order has the TTL in the name of the instance that placed it, whichever expired it.
func ttlsByInstance(t *testing.T, database string) {
	t.Helper()
	var wrong, short, long int
	err := testbedtest.OpenSQL(t, database).QueryRowContext(context.WithoutCancel(t.Context()), `
SELECT SUM(o.expires_at - o.created_at <> 1000000 * CAST(SUBSTRING(l.instance, 1, 1) AS INTEGER)), SUM(l.instance LIKE '1s-%'), SUM(l.instance LIKE '2s-%')
FROM orders o JOIN ledger l ON l.order_id = o.id AND l.movement = 'RESERVE'`).Scan(&wrong, &short, &long)
	if err != nil || wrong > 0 || short == 0 || long == 0 {
		t.Errorf("%d of %d and %d orders have another TTL: %v", wrong, short, long, err)
	}
}
