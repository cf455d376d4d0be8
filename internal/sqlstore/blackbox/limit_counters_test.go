package blackbox_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// manyOrders stores n pending orders of a customer, each of one unit of sku.
func manyOrders(t *testing.T, h *handle, s *sqlstore.Store, customer, sku string, n int) {
	t.Helper()
	placed := request(1, sku)
	placed.Order.CustomerID = customer
	if err := commitAlone(t, s, conditionally(sku), placed); err != nil || placed.Err != nil {
		t.Fatal(err, placed.Err)
	}
	const copies, most = "WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", 1000 // in a statement, which is not to be slow
	for _, into := range []string{
		"orders (id, customer_id, status, payment_id, created_at, expires_at, reason) %s SELECT %s, customer_id, status, payment_id, created_at, expires_at, reason FROM orders, n WHERE id = ?",
		"order_lines (order_id, sku, quantity) %s SELECT %s, sku, quantity FROM order_lines, n WHERE order_id = ?",
		"ledger (order_id, sku, movement, quantity, on_hand, reserved, fence, instance, created_at) %s SELECT %s, sku, movement, quantity, on_hand, reserved, fence, instance, created_at FROM ledger, n WHERE order_id = ?",
	} {
		id := "CONCAT(LEFT('" + placed.Order.ID + "', 20), i)"
		if h.db.Name() == "sqlite" {
			id = "SUBSTR('" + placed.Order.ID + "', 1, 20) || i"
		}
		if h.db.Name() == "mysql" {
			if h.db.Exec("SET SESSION max_recursive_iterations = 1000000").Error != nil { // it is MySQL
				if err := h.db.Exec("SET SESSION cte_max_recursion_depth = 1000000").Error; err != nil {
					t.Fatal(err)
				}
			}
		}
		for from := 1; from < n; from += most {
			if err := h.db.Exec("INSERT INTO "+fmt.Sprintf(into, fmt.Sprintf(copies, from, min(n, from+most)-1), id), placed.Order.ID).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.db.Exec("UPDATE skus SET reserved = reserved + ? WHERE sku = ?", n-1, sku).Error; err != nil {
		t.Fatal(err)
	}
}

// A customer with 20,000 open orders buys units of a SKU with a limit about as fast as a new customer. A limit of open orders counts them by index.
func TestManyOpenOrdersSlowNoLimitedPurchase(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "plain", "conditional", 100_000)
		limited(t, s, "few", "conditional", 100_000, 1000)
		manyOrders(t, raw, s, "old", "plain", 20_000)
		testbedtest.Steady(t, func(t testing.TB) {
			took := make(map[string][]time.Duration)
			for range 40 {
				began := time.Now() // a limit of open orders has them read from the index of their customer, and no more
				var open int
				err := raw.db.Raw("SELECT COUNT(*) FROM (SELECT expires_at FROM orders WHERE customer_id = 'old' AND status = ? LIMIT 30000) o", order.Pending).Scan(&open).Error
				if took["index"] = append(took["index"], time.Since(began)); err != nil || open < 20_000 {
					t.Fatal(open, err)
				}
				began = time.Now() // what a counter saves is to read the lines of these orders, too
				err = raw.db.Raw("SELECT COALESCE(SUM(quantity), 0) FROM orders o JOIN order_lines l ON l.order_id = o.id WHERE o.customer_id = 'old' AND o.status = ?",
					order.Pending).Scan(&open).Error
				if took["lines"] = append(took["lines"], time.Since(began)); err != nil || open < 20_000 {
					t.Fatal(open, err)
				}
				for _, customer := range []string{"old", "new"} {
					r := request(1, "few")
					r.Order.CustomerID, r.MaxOpen = customer, 30_000
					began := time.Now()
					if err := commitAlone(t, s, conditionally("few"), r); err != nil || r.Err != nil {
						t.Fatal(err, r.Err)
					}
					took[customer] = append(took[customer], time.Since(began))
				}
			}
			// Before there were counters, the quickest of 40 took a hundred times as long as for a new customer.
			old, fresh, index, lines := slices.Min(took["old"]), slices.Min(took["new"]), slices.Min(took["index"]), slices.Min(took["lines"])
			t.Logf("the quickest order of a customer with 20,000 took %v, of a new one %v, to read 20,000 from the index %v, with their lines %v", old, fresh, index, lines)
			if old > 2*fresh+2*index+lines/2 {
				t.Error("want about as much as for a new customer, and to read the index")
			}
		})
		if a := auditOf(t, s, "few"); !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// Orders are placed, cancelled, paid and expired, and all counters are deleted again and again. In the end the counters
// agree with the orders, and no customer has more than the limit.
func TestCountersAgreeWithTheOrders(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		raw := new(handle)
		stores := []*sqlstore.Store{open(t, url, "one", raw), open(t, url, "two")}
		limited(t, stores[0], "a", "conditional", 100_000, 5)
		limited(t, stores[0], "b", "conditional", 100_000, 5)
		create(t, stores[0], "free", "conditional", 100_000)
		var sides sync.WaitGroup
		for side := range 6 {
			s := stores[side%2]
			sides.Go(func() {
				for n := range testbedtest.Size(40, 400) {
					changeOne(t, s, side, n)
				}
			})
		}
		done := make(chan struct{})
		go func() { sides.Wait(); close(done) }()
		for deleted := 0; ; deleted++ {
			if err := raw.db.Exec("DELETE FROM customer_usage").Error; err != nil && !sqldb.Transient(err) && !sqldb.Is(err, sqldb.Late) && !sqldb.Broken(err) { // a node of Galera ends sessions
				t.Error(err)
			}
			select {
			case <-done:
				t.Logf("the counters were deleted %d times", deleted)
				for _, sku := range []string{"a", "b"} {
					changeFor(t, stores[0], "last", 0) // so that there is a counter, of a customer who has no other orders
					if a := auditOf(t, stores[0], sku); !a.OK() || a.Accepted() > 3*5 {
						t.Errorf("%+v %q", a, a.Broken())
					}
				}
				var without int
				if err := raw.db.Raw("SELECT COUNT(*) FROM customer_usage WHERE sku NOT IN ('a', 'b')").Scan(&without).Error; err != nil || without > 0 {
					t.Errorf("%d counters where there is no limit, %v", without, err)
				}
				if err := raw.db.Exec("UPDATE customer_usage SET units = units + 1 WHERE sku = 'a'").Error; err != nil {
					t.Fatal(err)
				}
				if a := auditOf(t, stores[0], "a"); a.Miscounted == 0 || a.OK() {
					t.Errorf("a wrong counter: %+v", a)
				}
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

// changeOne is changeFor one of three customers.
func changeOne(t *testing.T, s *sqlstore.Store, side, n int) {
	t.Helper()
	changeFor(t, s, fmt.Sprint("c", side%3), n)
}

// changeFor places an order of a customer, and pays it, cancels it or has it expire.
func changeFor(t *testing.T, s *sqlstore.Store, customer string, n int) {
	t.Helper()
	skus := [][]string{{"a"}, {"a", "b"}, {"b", "free"}, {"free"}}[n%4]
	r := request(1, skus...)
	r.Order.CustomerID = customer
	if n%3 == 0 {
		r.TTL = 0
	}
	_, err := insist(t.Context(), func() (int, error) {
		r.Answered, r.Err = false, nil
		if err := s.Commit(t.Context(), &order.Batch{Claims: conditionally(skus...), Requests: []*order.Request{r}}); err != nil {
			return 0, err
		}
		return 0, r.Err
	})
	_, over := errors.AsType[*order.LimitError](err)
	switch {
	case over:
		return
	case err != nil:
		t.Error(err)
	case n%3 == 0:
		_, err = insist(t.Context(), func() (int, error) {
			e, err := s.Expire(t.Context(), []string{r.Order.ID})
			if err == nil && e[0].Again > 0 {
				err = stock.ErrBusy
			}
			return 0, err
		})
	case n%10 == 1:
		err = settle(t.Context(), s, r.Order.ID, order.Confirmed, "p")
	default:
		err = settle(t.Context(), s, r.Order.ID, order.Cancelled, "")
	}
	if err != nil {
		t.Error(err)
	}
}

// Limits hold if the orders of a customer are placed at three nodes of a Galera cluster at once.
func TestLimitsHoldOnThreeGaleraNodes(t *testing.T) {
	t.Parallel()
	nodes := testbedtest.StartGalera(t).Nodes()
	var stores []*sqlstore.Store
	for i, node := range nodes {
		stores = append(stores, open(t, node.URL(), fmt.Sprint("shop-", i+1)))
	}
	limited(t, stores[0], "few", "conditional", 1000, 1)
	for i := range nodes { // transactions that write the same row of stock would conflict anyway
		create(t, stores[0], fmt.Sprint("plain-", i), "conditional", 1000)
	}
	for _, node := range nodes {
		catchUp(t, node.URL())
	}
	for n := range 20 {
		for sku, most := range map[string]int{"few": 1, "plain": 2} {
			placed := atAllNodes(t, stores, sku, fmt.Sprint(sku, "-", n))
			if placed < 1 || placed > most {
				t.Errorf("%d orders of %s, want at most %d", placed, sku, most)
			}
		}
	}
	catchUp(t, nodes[0].URL())
	if a := auditOf(t, stores[0], "few"); !a.OK() {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// atAllNodes has a customer, who may have two open orders, place two at each node at once.
func atAllNodes(t *testing.T, stores []*sqlstore.Store, sku, customer string) (placed int) {
	t.Helper()
	var (
		mu     sync.Mutex
		buyers sync.WaitGroup
	)
	for i := range 2 * len(stores) {
		buyers.Go(func() {
			sku, most := sku, int64(0)
			if sku == "plain" {
				sku, most = fmt.Sprint("plain-", i%len(stores)), 2
			}
			r := request(1, sku)
			r.Order.CustomerID, r.MaxOpen = customer, most
			_, err := insist(t.Context(), func() (int, error) {
				r.Answered, r.Err = false, nil
				if err := stores[i%len(stores)].Commit(t.Context(), batchOf(sku, stock.Conditional, dlock.Fence{}, r)); err != nil {
					return 0, err
				}
				return 0, r.Err
			})
			if _, over := errors.AsType[*order.LimitError](err); err != nil && !over {
				t.Error(err)
			}
			if mu.Lock(); err == nil {
				placed++
			}
			mu.Unlock()
		})
	}
	buyers.Wait()
	return placed
}
