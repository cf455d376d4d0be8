package e2e_test

import (
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
