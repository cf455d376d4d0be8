package blackbox_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// buyOne places an order of one unit of the SKU a.
func buyOne(ctx context.Context, shop *order.Service) (order.Order, error) {
	return shop.Place(ctx, order.Purchase{Customer: "c1", Items: []order.Item{{SKU: "a", Quantity: 1}}})
}

// refusesLate fails the test unless an order with a late fence is refused and changes nothing.
func refusesLate(t *testing.T, s *sqlstore.Store, token uint64) {
	t.Helper()
	before, r := levelOf(t, s, "a"), request(1, "a")
	late := stock.Claim{SKU: "a", Update: stock.Fenced, Fence: dlock.Fence{Token: token, Owner: "late"}}
	err := s.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{late}, Requests: []*order.Request{r}})
	if refusal, ok := errors.AsType[*stock.FencedError](err); !ok || refusal.Base != before.Base || refusal.Refused != late {
		t.Errorf("a late fence %d of before: %v, %v", token, err, r.Err)
	}
	if after := levelOf(t, s, "a"); after != before {
		t.Errorf("a late fence %d of before has changed %+v to %+v", token, before, after)
	}
}

// A lock service that has lost its data counts its fences from the start. They are refused, as are late earlier ones,
// until an operator sets a token offset.
func TestRebase(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "a", "etcd", 100)
		service := &alwaysGrants{}
		service.token.Store(1000)
		strategies := stock.NewStrategies(stock.Lockers{Etcd: service})
		shop := order.NewService(s, strategies, order.Config{})
		buyWithin := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := buyOne(ctx, shop)
			return err
		}
		buy := func() error { return buyWithin(time.Minute) }
		if err := buy(); err != nil {
			t.Fatal(err)
		}

		service.token.Store(0)
		before := levelOf(t, s, "a")
		if err := buyWithin(2 * time.Second); !errors.Is(err, stock.ErrBusy) {
			t.Errorf("with low fences: %v", err)
		}
		if after := levelOf(t, s, "a"); after != before {
			t.Errorf("a refused order has changed %+v to %+v", before, after)
		}

		stocks := stock.NewService(s, strategies, nil)
		rebased, err := stocks.Rebase(t.Context(), "a")
		if err != nil || rebased.Base != 1001 || rebased.Fence.Token != 1001 || rebased.Reserved != 1 {
			t.Fatalf("%+v, %v", rebased, err)
		}
		service.token.Store(0)
		if err := buy(); err != nil { // the service knew the old base
			t.Fatal(err)
		}
		if l := levelOf(t, s, "a"); l.Fence.Token < 1002 || l.Fence.Token > 1100 || l.Reserved != 2 {
			t.Errorf("after the rebase: %+v", l)
		}
		for n := range 3 {
			if err := buy(); err != nil {
				t.Errorf("order %d: %v", n, err)
			}
		}
		// Those that were granted before the loss, by a service that counted on, are late.
		for _, token := range []uint64{1002, 1_000_000} {
			refusesLate(t, s, token)
			if err := buy(); err != nil {
				t.Errorf("after a late fence %d: %v", token, err)
			}
		}

		if _, err := stocks.Rebase(t.Context(), "a"); err != nil { // nothing was lost
			t.Error(err)
		}
		if err := buy(); err != nil {
			t.Errorf("after a rebase that nobody needed: %v", err)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Accepted() != 8 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

func TestRebaseRefusals(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "plain", "conditional", 1)
		create(t, s, "unfenced", "redis-unfenced", 1)
		create(t, s, "raised", "redis", 1)
		stocks := stock.NewService(s, stock.NewStrategies(stock.Lockers{}), nil)
		for sku, want := range map[string]error{"none": stock.ErrNotFound, "plain": stock.ErrUnfenced, "unfenced": stock.ErrUnfenced, "raised": stock.ErrRaisesCounter} {
			if _, err := stocks.Rebase(t.Context(), sku); !errors.Is(err, want) {
				t.Errorf("%s: %v", sku, err)
			}
		}
		if _, err := s.Rebase(t.Context(), "none"); !errors.Is(err, stock.ErrNotFound) {
			t.Error(err)
		}
	})
}

// Orders from several instances continue while an operator raises the token offset of their SKU repeatedly. The lock
// service counts from the start each time. Each order is placed once, and the invariants hold.
func TestRebaseBesideOrders(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(testbedtest.Size(4, 40))*time.Minute)
		defer cancel()
		service := &alwaysGrants{}
		strategies := stock.NewStrategies(stock.Lockers{Etcd: service})
		s := open(t, url, "books")
		create(t, s, "a", "etcd", 1_000_000) // never sold out
		stocks := stock.NewService(s, strategies, nil)
		var (
			group    sync.WaitGroup
			accepted atomic.Int64
			over     atomic.Bool
		)
		// Both are there before the first one writes.
		for _, store := range []*sqlstore.Store{open(t, url, "one"), open(t, url, "one")} {
			shop := order.NewService(store, strategies, order.Config{})
			for range 4 {
				group.Go(func() {
					for last := false; !last; accepted.Add(1) {
						last = over.Load() // one more at the end
						if _, err := insist(ctx, func() (order.Order, error) { return buyOne(ctx, shop) }); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		base := uint64(0)
		for range testbedtest.Size(10, 300) {
			service.token.Store(0)
			l, err := stocks.Rebase(ctx, "a")
			if err != nil || l.Base <= base {
				t.Errorf("from %d to %+v, %v", base, l, err)
				break
			}
			base = l.Base
			for sold := accepted.Load(); accepted.Load() == sold && ctx.Err() == nil; {
				time.Sleep(time.Millisecond)
			}
		}
		over.Store(true)
		group.Wait()
		if a := auditOf(t, s, "a"); !a.OK() || a.Accepted() != accepted.Load() {
			t.Errorf("accepted %d: %+v %q", accepted.Load(), a, a.Broken())
		}
	})
}

// The database commits a rebase and the reply is lost: the ledger has it once.
func TestLostReplyToRebase(t *testing.T) {
	t.Parallel()
	database := testbedtest.Database(t)
	behind, proxy := behindProxy(t, database)
	s := open(t, behind, "one")
	create(t, s, "a", "etcd", 10)
	if err := s.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Fenced, fence(77)), Requests: []*order.Request{request(2, "a")}}); err != nil {
		t.Fatal(err)
	}
	for _, base := range []uint64{77, 78} { // the second finds that nothing was accepted since
		proxy.DropReply("COMMIT")
		if l, err := s.Rebase(t.Context(), "a"); err != nil || l.Base != base {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if n := proxy.Dropped(); n != 2 {
		t.Fatalf("%d replies were dropped", n)
	}
	var noted int
	if err := rawDB(t, database).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ledger WHERE movement = 'REBASE'").Scan(&noted); err != nil || noted != 2 {
		t.Errorf("%d in the ledger, %v", noted, err)
	}
}

// The ledger of a SKU has each rebase.
func TestRebaseIsInTheLedger(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "somebody")
		create(t, s, "a", "etcd", 10)
		if err := s.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Fenced, fence(77)), Requests: []*order.Request{request(2, "a")}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rebase(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var quantity, onHand, reserved, token int64
		var by string
		row := rawDB(t, url).QueryRowContext(t.Context(), "SELECT quantity, on_hand, reserved, fence, instance FROM ledger WHERE sku = 'a' AND movement = 'REBASE'")
		if err := row.Scan(&quantity, &onHand, &reserved, &token, &by); err != nil {
			t.Fatal(err)
		}
		if quantity != 0 || onHand != 0 || reserved != 0 || token != 77 || by != "somebody" {
			t.Errorf("quantity %d, on hand %d, reserved %d, fence %d, by %q", quantity, onHand, reserved, token, by)
		}
	})
}
