package blackbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// batchOf returns a batch of orders of one SKU, which is sold by the update.
func batchOf(sku string, w stock.Update, f dlock.Fence, requests ...*order.Request) *order.Batch {
	return &order.Batch{Claims: claim(sku, w, f), Requests: requests}
}

// Batches of different SKUs and strategies are in one transaction. A shortage, a stale fencing token, an unknown SKU and a duplicate
// key have the answer that they have alone, and the others are stored.
func TestBatchesShareATransaction(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		updates := []stock.Update{stock.Conditional, stock.RowLock, stock.Fenced}
		var group []*order.Batch
		sku := func(w stock.Update) string { return fmt.Sprint("s", int(w)) }
		for _, w := range updates {
			create(t, s, sku(w), "conditional", 40)
			group = append(group, batchOf(sku(w), w, fence(7), request(30, sku(w)), request(20, sku(w)), request(10, sku(w))))
		}
		create(t, s, "stale", "redis", 10)
		if err := s.Commit(t.Context(), batchOf("stale", stock.Fenced, fence(9), request(1, "stale"))); err != nil {
			t.Fatal(err)
		}
		create(t, s, "keys", "conditional", 10)
		keyedRequest := func(payload string) *order.Request {
			r := request(1, "keys")
			r.Key = keyed("POST /orders", "k", payload)
			return r
		}
		basket := request(1, "keys", sku(stock.RowLock))
		tooMuch := request(9, "keys", sku(stock.RowLock)) // of which s4 has nothing left
		stale := batchOf("stale", stock.Fenced, fence(8), request(1, "stale"))
		missing := batchOf("missing", stock.RowLock, dlock.Fence{}, request(1, "missing"))
		twice := []*order.Request{keyedRequest(""), keyedRequest(""), keyedRequest("other")}
		both := append(claim("keys", stock.Conditional, dlock.Fence{}), claim(sku(stock.RowLock), stock.RowLock, dlock.Fence{})...)
		group = append(group, stale,
			batchOf("keys", stock.Conditional, dlock.Fence{}, twice...),
			&order.Batch{Claims: both, Requests: []*order.Request{tooMuch}},
			&order.Batch{Claims: both, Requests: []*order.Request{basket}},
		)
		if err := s.Commit(t.Context(), append(group, missing)...); !errors.Is(err, stock.ErrNotFound) { // nobody is sold a SKU that is not there
			t.Errorf("an unknown SKU: %v", err)
		}
		if err := s.Commit(t.Context(), group...); err != nil {
			t.Fatal(err)
		}
		for i, w := range updates {
			b := group[i]
			if b.Err != nil || b.Requests[0].Err != nil || !isShort(b.Requests[1].Err) || b.Requests[2].Err != nil {
				t.Errorf("update %d: %v; %v, %v, %v", w, b.Err, b.Requests[0].Err, b.Requests[1].Err, b.Requests[2].Err)
			}
			balanced(t, s, sku(w), 40, 0)
		}
		if !errors.Is(stale.Err, dlock.ErrFenced) || stale.Requests[0].Answered {
			t.Errorf("a stale token: %v, answered %v", stale.Err, stale.Requests[0].Answered)
		}
		if twice[0].Err != nil || !errors.As(twice[1].Err, new(*idempotency.AnsweredError)) || !errors.Is(twice[2].Err, idempotency.ErrReused) {
			t.Errorf("one key three times: %v, %v, %v", twice[0].Err, twice[1].Err, twice[2].Err)
		}
		if !isShort(tooMuch.Err) || !isShort(basket.Err) {
			t.Errorf("baskets of a SKU that is sold out: %v, %v", tooMuch.Err, basket.Err)
		}
		balanced(t, s, "stale", 1, 0)
		balanced(t, s, "keys", 1, 0)
		late := batchOf(sku(stock.Fenced), stock.Fenced, fence(6), request(0, sku(stock.Fenced)))
		if err := s.Commit(t.Context(), late); !errors.Is(err, dlock.ErrFenced) {
			t.Errorf("a token below that of the shared transaction: %v", err)
		}
	})
}

// Shared transactions of three instances sell the same few units, and baskets of them: no unit is sold twice.
func TestSharedTransactionsSellEachUnitOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		const skus, units = 8, 20
		strategies := []string{"conditional", "for-update"}
		var stores []*sqlstore.Store
		for i := range 3 {
			stores = append(stores, open(t, url, fmt.Sprint("instance-", i)))
		}
		name := func(i int) string { return fmt.Sprint("s", i%skus) }
		claims := make(map[string]stock.Claim)
		for i := range skus {
			strategy := strategies[i%len(strategies)]
			create(t, stores[0], name(i), strategy, units)
			st, err := stock.NewStrategies(stock.Lockers{}).Lookup(strategy)
			if err != nil {
				t.Fatal(err)
			}
			claims[name(i)] = stock.Claim{SKU: name(i), Update: st.Update}
		}
		var sellers sync.WaitGroup
		for n, s := range stores {
			sellers.Go(func() {
				for round := range 25 {
					var group []*order.Batch
					for i := range skus {
						wanted := []string{name(i)}
						if (i+round+n)%3 == 0 {
							wanted = append(wanted, name(i+1+round%3))
							slices.Sort(wanted)
						}
						b := &order.Batch{Requests: []*order.Request{request(1, wanted...)}}
						b.Requests[0].Order.CustomerID = fmt.Sprint("c", n)
						for _, sku := range wanted {
							b.Claims = append(b.Claims, claims[sku])
						}
						group = append(group, b)
					}
					if _, err := insist(t.Context(), func() (any, error) { return nil, s.Commit(t.Context(), group...) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		sellers.Wait()
		for i := range skus {
			if a := auditOf(t, stores[0], name(i)); !a.OK() || a.Open != units {
				t.Errorf("%+v %q", a, a.Broken())
			}
		}
	})
}

// Of two batches with different fencing tokens for one SKU the later token wins, in either order: the row never accepts
// the lower token second.
func TestTokensOfOneTransactionAscend(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "a", "redis", 10)
		newer, older := batchOf("a", stock.Fenced, fence(6), request(1, "a")), batchOf("a", stock.Fenced, fence(5), request(1, "a"))
		if err := s.Commit(t.Context(), newer, older); err != nil || newer.Err != nil || !errors.Is(older.Err, dlock.ErrFenced) {
			t.Errorf("%v; %v, %v", err, newer.Err, older.Err)
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}

// The reply to the COMMIT of a shared transaction is lost: all orders are found, and placed once.
func TestLostReplyToASharedCommit(t *testing.T) {
	t.Parallel()
	s, proxy := proxied(t)
	var group []*order.Batch
	for i := range 20 {
		sku := fmt.Sprint("s", i)
		create(t, s, sku, "conditional", 1)
		group = append(group, batchOf(sku, stock.Conditional, dlock.Fence{}, request(1, sku), request(1, sku)))
	}
	proxy.DropReply("\x03COMMIT")
	if err := s.Commit(t.Context(), group...); err != nil {
		t.Fatal(err)
	}
	if n := proxy.Dropped(); n != 1 {
		t.Fatalf("%d replies were dropped, want 1", n)
	}
	for i, b := range group {
		if b.Err != nil || b.Requests[0].Err != nil || !isShort(b.Requests[1].Err) {
			t.Errorf("%d: %v; %v, %v", i, b.Err, b.Requests[0].Err, b.Requests[1].Err)
		}
		if a := auditOf(t, s, fmt.Sprint("s", i)); !a.OK() || a.Open != 1 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	}
}

// An order that cannot be stored fails alone, whatever the others of its transaction buy.
func TestABadOrderAmongOtherSKUsFailsAlone(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		svc := order.NewService(s, stock.NewStrategies(stock.Lockers{}), order.Config{})
		const n = 40
		errs := make(chan error, n)
		for i := range n {
			sku := fmt.Sprint("s", i)
			create(t, s, sku, []string{"conditional", "for-update"}[i%2], 1)
			p := order.Purchase{Customer: fmt.Sprint("c", i), Items: []order.Item{{SKU: sku, Quantity: 1}}}
			if i%10 == 3 {
				p.Key = keyed("POST /orders", strings.Repeat("k", idempotency.MaxKey+1), "")
			}
			go func() {
				_, err := svc.Place(t.Context(), p)
				if bad := i%10 == 3; bad == (err == nil) {
					err = fmt.Errorf("order %d: %w", i, errors.Join(errUnexpected, err))
				} else {
					err = nil
				}
				errs <- err
			}()
		}
		for range n {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		audits, err := s.Audit(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		open := int64(0)
		for _, a := range audits {
			if open += a.Open; !a.OK() {
				t.Errorf("%+v %q", a, a.Broken())
			}
		}
		if open != n-n/10 {
			t.Errorf("%d orders, want %d", open, n-n/10)
		}
	})
}

var errUnexpected = errors.New("unexpected outcome")
