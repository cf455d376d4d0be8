package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/stock"
)

// keptWithin bounds the p99 of orders that are placed alongside a mass of expiries. A batch keeps
// stock rows for milliseconds; the rest is for machines that have a lot else to do.
const keptWithin = 5 * time.Second

// Many orders became overdue at once, while no instance ran. The first one that comes
// expires them all, and takes orders meanwhile.
func TestManyOverdueAtOnce(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	store := books(t, database)
	overdue := testbedtest.Size(2_000, 100_000)
	for _, sku := range []string{"old", "new"} {
		if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: 1_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	abandon(t, store, "old", overdue)
	r := start(t, "--database", database, "--redis", ownRedis(t))

	busy := new(atomic.Bool)
	busy.Store(true)
	var group sync.WaitGroup
	var beside []time.Duration
	group.Go(func() { beside = buyers(t, r.url, busy.Load) })
	stalls := detectStalls(t)
	began := time.Now()
	expired(t, store, "old", overdue)
	took := time.Since(began)
	busy.Store(false)
	group.Wait()
	balanced(t, store, "old")

	left := new(atomic.Int32)
	left.Store(200)
	quiet := buyers(t, r.url, func() bool { return left.Add(-1) >= 0 })
	t.Logf("%d overdue orders are gone after %v; alongside that %d orders, p50 %v, p99 %v; afterwards %d orders, p50 %v, p99 %v", overdue,
		took.Round(time.Millisecond), len(beside), quantile(beside, 50), quantile(beside, 99), len(quiet), quantile(quiet, 50), quantile(quiet, 99))
	if len(beside) == 0 {
		t.Error("no order was taken meanwhile")
	}
	if p99 := quantile(beside, 99); p99 > keptWithin+stalls.total() {
		t.Errorf("alongside the overdue orders the p99 of new ones is %v, want at most %v", p99, keptWithin)
	}
}

// buyers are two who buy the SKU new one after the other as long as more says so. They return
// how long each order took; none may be refused.
func buyers(t *testing.T, url string, more func() bool) (took []time.Duration) {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	for range 2 {
		group.Go(func() {
			for more() {
				began := time.Now()
				status, answer, err := buy(t.Context(), url, "new")
				if err != nil || status != http.StatusCreated {
					t.Errorf("status %d, %v: %s", status, err, answer)
					return
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return took
}

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

// forgotten is less than the lease of a timer: an order is that late if an instance had claimed it and stopped without
// releasing it.
const forgotten = 28 * time.Second

// Three instances are replaced one after the other while orders come in and expire. Customers
// and orders notice nothing while the machine runs. If the machine is paused, customers may be asked to retry, and a late
// order makes the test run once more.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	for try := 1; ; try++ {
		var latest, stood time.Duration
		ok := t.Run(fmt.Sprint("try-", try), func(t *testing.T) { latest, stood = rollingRestart(t) })
		switch {
		case !ok || latest <= forgotten:
			return
		case stood == 0 || try == 3:
			t.Fatalf("an order expired %v late, as if an instance that stopped had kept it; the machine was paused for %v", latest, stood)
		}
	}
}

// rollingRestart returns how late the latest order was, and for how long the machine was paused.
func rollingRestart(t *testing.T) (latest, stood time.Duration) {
	t.Helper()
	database := testbedtest.Database(t)
	store := books(t, database)
	if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "a", Strategy: "conditional", OnHand: 1_000_000}); err != nil {
		t.Fatal(err)
	}
	redis, stalls := ownRedis(t), detectStalls(t)
	client, noticed := noticing(t)
	noticed.permits = true // one that has just begun may have none yet
	started := 0
	next := func() *instance {
		started++
		return start(t, "--instance", fmt.Sprint("shop-", started), "--database", database, "--redis", redis, "--order-ttl", "1s")
	}
	nodes := []*instance{next(), next(), next()}
	b := new(balancer)
	b.set(nodes[0].url, nodes[1].url, nodes[2].url)

	var group sync.WaitGroup
	var rolling atomic.Bool
	rolling.Store(true)
	var orders atomic.Int64
	for range 2 {
		group.Go(func() {
			for rolling.Load() {
				a := insist(func() answer { return certain(t.Context(), client, b.url(), "a") })
				if a.err != nil || a.status != http.StatusCreated {
					t.Error(a)
					return
				}
				orders.Add(1)
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	for range testbedtest.Size(1, 10) {
		for i, old := range nodes {
			b.set(nodes[(i+1)%3].url, nodes[(i+2)%3].url)
			old.stop()
			<-old.exited
			nodes[i] = next()
			b.set(nodes[0].url, nodes[1].url, nodes[2].url)
		}
	}
	rolling.Store(false)
	group.Wait()
	noticed.judge(t, stalls)
	latest = expired(t, store, "a", int(orders.Load()))
	balanced(t, store, "a")
	t.Logf("%d instances were replaced; the latest order was %v late", started-3, latest)
	return latest, stalls.total()
}
