package e2e_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
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

// forgotten is less than the lease of a timer: an order is that late if an instance had claimed it and stopped without
// releasing it.
const forgotten = 28 * time.Second

// Three instances are replaced one after the other while orders come in and expire. No customer and no order is
// affected. On a machine that was paused, customers may have to retry, and the test reads the late orders of stopped
// instances once more.
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
