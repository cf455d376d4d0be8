package blackbox_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// A Galera node rolls a transaction back when another node has written the same row, and may do so between two statements.
// The rest of a packet would then run on its own, and COMMIT would succeed. Every order that was placed has its rows, and
// the stock agrees with them. Two purges during a sale at all three nodes lose no unit, either.
func TestPlacedOrdersAreStoredByThreeGaleraNodes(t *testing.T) {
	t.Parallel()
	var stores []*sqlstore.Store
	nodes := testbedtest.StartGalera(t).Nodes()
	var urls []string
	for i, node := range nodes {
		urls = append(urls, node.URL())
		stores = append(stores, open(t, node.URL(), fmt.Sprint("shop-", i+1)))
	}
	for name, update := range map[string]stock.Update{
		"conditional": stock.Conditional, "optimistic": stock.Version, "for-update": stock.RowLock,
	} {
		create(t, stores[0], name, "conditional", 100)
		for _, node := range nodes {
			catchUp(t, node.URL())
		}
		placed, unknown := sellAtAll(t, stores, name, update, 400)
		catchUp(t, nodes[0].URL())
		for _, id := range placed {
			if _, err := stores[0].Order(t.Context(), id, ""); err != nil {
				t.Errorf("%s: an order was placed and is not stored: %v", name, err)
			}
		}
		a := auditOf(t, stores[0], name)
		if n := int64(len(placed)); !a.OK() || n == 0 || a.Sold+a.Open < n || a.Sold+a.Open > n+unknown {
			t.Errorf("%s: %d placed and %d unknown: %+v %q", name, n, unknown, a, a.Broken())
		}
	}
	if !t.Failed() { // a purge of books that are wrong may never end
		purgeDuringASale(t, urls...)
	}
}

// sellAtAll has eight buyers at each store, who place orders of one unit until there were so many attempts. It returns the
// orders that were placed, and how many may have been.
func sellAtAll(t *testing.T, stores []*sqlstore.Store, sku string, w stock.Update, attempts int64) (placed []string, unknown int64) {
	t.Helper()
	var (
		tried  atomic.Int64
		mu     sync.Mutex
		buyers sync.WaitGroup
	)
	for i := range 8 * len(stores) {
		s := stores[i%len(stores)]
		buyers.Go(func() {
			for tried.Add(1) <= attempts {
				r := request(1, sku)
				r.Order.CustomerID = fmt.Sprint("c", i)
				err := s.Commit(t.Context(), batchOf(sku, w, dlock.Fence{}, r))
				mu.Lock()
				switch {
				case err != nil && errors.Is(err, order.ErrOutcomeUnknown):
					unknown++
				case err == nil && r.Err == nil:
					placed = append(placed, r.Order.ID)
				}
				mu.Unlock()
			}
		})
	}
	buyers.Wait()
	return placed, unknown
}

// catchUp waits until a node has what was committed at all nodes before.
func catchUp(t *testing.T, node string) {
	t.Helper()
	conn, err := rawDB(t, node).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{"SET SESSION wsrep_sync_wait = 15", "SELECT COUNT(*) FROM skus"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
