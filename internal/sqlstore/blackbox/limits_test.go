package blackbox_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// limited puts units of a SKU on sale of which each customer may have only some.
func limited(t testing.TB, s *sqlstore.Store, sku, strategy string, units, limit int64) {
	t.Helper()
	if _, created, err := s.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: strategy, OnHand: units, Limit: limit}); err != nil || !created {
		t.Fatal(created, err)
	}
}

// A customer who orders many times at once, of several SKUs at several instances, gets exactly
// as much as one may have.
func TestLimitsHoldUnderConcurrency(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		const at = 32
		lease, units := memlock.New(memlock.Config{}), counter(t)
		var stores []*sqlstore.Store
		for i := range 3 {
			stores = append(stores, open(t, url, fmt.Sprint("instance-", i)))
		}
		skus := []string{"conditional", "for-update", "redis", "optimistic", "redis-cohort", "lua", "sql"}
		for _, sku := range skus {
			limited(t, stores[0], sku, sku, 100, 3)
			create(t, stores[0], "free-"+sku, sku, 100)
		}
		run := func(customer string, c order.Config, items func(n int) []order.Item) (accepted int) {
			t.Helper()
			var (
				group sync.WaitGroup
				mu    sync.Mutex
				start = make(chan struct{})
			)
			for n := range at {
				svc := order.NewService(stores[n%3], stock.NewStrategies(stock.Lockers{Redis: lease, SQL: lease, Units: units}), c)
				group.Go(func() {
					<-start
					_, err := insist(t.Context(), func() (order.Order, error) {
						return svc.Place(t.Context(), order.Purchase{Customer: customer, Items: items(n)})
					})
					_, over := errors.AsType[*order.LimitError](err)
					if err != nil && !over {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						accepted++
					}
				})
			}
			close(start)
			group.Wait()
			return accepted
		}
		if n := run("cap", order.Config{MaxOpen: 5}, func(n int) []order.Item {
			return []order.Item{{SKU: "free-" + skus[n%len(skus)], Quantity: 1}}
		}); n != 5 {
			t.Errorf("%d open orders, want 5", n)
		}
		if n := run("units", order.Config{}, func(n int) []order.Item {
			return []order.Item{{SKU: skus[n%len(skus)], Quantity: 1}}
		}); n != 21 {
			t.Errorf("%d orders of 7 SKUs with a limit of 3 each", n)
		}
		if n := run("baskets", order.Config{}, func(n int) []order.Item {
			return []order.Item{{SKU: skus[n%len(skus)], Quantity: 1}, {SKU: skus[(n+1)%len(skus)], Quantity: 1}, {SKU: "free-" + skus[n%3], Quantity: 1}}
		}); n < 9 || n > 10 {
			t.Errorf("%d baskets of 2 units, of 7 SKUs with a limit of 3 each", n)
		}
		for _, sku := range skus {
			if a := auditOf(t, stores[0], sku); !a.OK() || a.Open > 6 {
				t.Errorf("%+v %q", a, a.Broken())
			}
		}
	})
}

// The limit counts what the customer still has. Expired orders, scanned or not, cancelled ones and those of others do
// not count. A paid order is not open.
func TestWhatCountsAgainstALimit(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		limited(t, s, "a", "conditional", 100, 4)
		create(t, s, "b", "conditional", 100)
		try := func(quantity, maxOpen int64, customer string, ttl time.Duration, skus ...string) (order.Order, error) {
			t.Helper()
			r := request(quantity, skus...)
			r.MaxOpen, r.TTL, r.Order.CustomerID = maxOpen, ttl, customer
			if err := s.Commit(ctx, &order.Batch{Claims: conditionally(skus...), Requests: []*order.Request{r}}); err != nil {
				t.Fatal(err)
			}
			return r.Order, r.Err
		}
		must := func(o order.Order, err error) order.Order {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			return o
		}
		refused := func(want order.LimitError, err error) {
			t.Helper()
			got, ok := errors.AsType[*order.LimitError](err)
			if !ok || cmp.Diff(want, *got) != "" {
				t.Errorf("%v, want %+v", err, want)
			}
		}
		over := func(_ order.Order, err error) error { return err }
		must(try(4, 0, "c2", time.Hour, "a"))
		must(try(4, 0, "c1", 0, "a")) // expired at once
		cancelled := must(try(4, 0, "c1", time.Hour, "a"))
		refused(order.LimitError{SKU: "a", Limit: 4, Had: 4}, over(try(1, 0, "c1", time.Hour, "a", "b")))
		settle := func(o order.Order, to order.Status) {
			t.Helper()
			if _, changed, err := s.Settle(ctx, order.Target{ID: o.ID}, to, ""); err != nil || !changed {
				t.Fatal(changed, err)
			}
		}
		settle(cancelled, order.Cancelled)
		paid := must(try(3, 0, "c1", time.Hour, "a"))
		settle(paid, order.Confirmed)
		refused(order.LimitError{SKU: "a", Limit: 4, Had: 3}, over(try(2, 0, "c1", time.Hour, "a")))
		must(try(1, 1, "c1", time.Hour, "a", "b")) // the first that is open
		refused(order.LimitError{Limit: 1, Had: 1}, over(try(1, 1, "c1", time.Hour, "b")))
		must(try(100-1, 2, "c1", time.Hour, "b"))
		refused(order.LimitError{Limit: 2, Had: 2}, over(try(1, 2, "c1", time.Hour, "b"))) // though it is sold out
		balanced(t, s, "a", 4+4+1, 3)                                                      // with expired orders that no scan has found
	})
}

// The orders of one customer in a batch count for one another, and those that are short of
// units do not.
func TestLimitsWithinABatch(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		for _, w := range []stock.Update{stock.Conditional, stock.RowLock} {
			sku := fmt.Sprint("a", w)
			limited(t, s, sku, "conditional", 6, 10)
			var batch []*order.Request
			for _, q := range []int64{3, 9, 7, 2, 1, 1} {
				r := request(q, sku)
				r.MaxOpen, r.Order.CustomerID = 3, sku
				batch = append(batch, r)
			}
			if err := s.Commit(t.Context(), &order.Batch{Claims: claim(sku, w, dlock.Fence{}), Requests: batch}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range batch {
				got = append(got, fmt.Sprintf("%T", r.Err))
			}
			want := "<nil> *order.LimitError *stock.ShortageError <nil> <nil> *order.LimitError"
			if strings.Join(got, " ") != want {
				t.Errorf("write %d: %q, want %q", w, got, want)
			}
			balanced(t, s, sku, 6, 0)
		}
	})
}

// A payment that is under way when its order expires counts against the limit: the next order
// waits until it is known.
func TestPaymentUnderWayCountsAgainstALimit(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		for n, ttl := 0, 500*time.Millisecond; !paidLate(t, s, url, fmt.Sprint("a", n), ttl); n, ttl = n+1, 2*ttl {
			if ttl > time.Minute {
				t.Fatal("no order was paid before it expired")
			}
		}
	})
}

// paidLate pays for an order of sku, of which a customer may have one. It places the next one when the first has
// expired and its payment is not known. paid is false, and nothing is judged, if the machine was so slow that the
// payment came too late.
func paidLate(t *testing.T, s *sqlstore.Store, url, sku string, ttl time.Duration) (paid bool) {
	t.Helper()
	ctx := t.Context()
	limited(t, s, sku, "conditional", 10, 1)
	r := request(1, sku)
	r.TTL = ttl
	if err := s.Commit(ctx, &order.Batch{Claims: claim(sku, stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	g := newGate(gate{after: "ledger"})
	paying := open(t, url, "paying", g)
	payment := make(chan bool, 1)
	go func() {
		_, changed, err := paying.Settle(ctx, order.Target{ID: r.Order.ID}, order.Confirmed, "p1")
		if err != nil {
			t.Error(err)
		}
		payment <- changed
	}()
	select {
	case <-g.reached:
	case <-payment:
		return false
	}
	if strings.HasPrefix(url, "mysql:") { // SQLite's writer waits for the other
		past(r.Order)
	}
	release := time.AfterFunc(300*time.Millisecond, func() { close(g.opened) })
	defer release.Stop()
	next := request(1, sku)
	err := commitAlone(t, s, claim(sku, stock.Conditional, dlock.Fence{}), next)
	if !<-payment { // its transaction was cut off while the machine was paused
		return false
	}
	if _, over := errors.AsType[*order.LimitError](next.Err); err != nil || !over {
		t.Errorf("%v, %v", err, next.Err)
	}
	balanced(t, s, sku, 0, 1)
	return true
}
