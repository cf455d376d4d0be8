package blackbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// A segment is drained between the look at it and the order. The order gets what there is elsewhere, and is
// refused only when there is nothing.
func TestSegmentThatIsDrainedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, restocked := range []bool{true, false} {
		t.Run(fmt.Sprint("restocked=", restocked), func(t *testing.T) {
			t.Parallel()
			url, g := testbedtest.Database(t), newGate(gate{before: "UPDATE sku"}) // SQLite has one writer at a time
			slow, s := open(t, url, "slow", g), open(t, url, "one")
			create(t, s, "a", stock.SegmentedName, 1)
			r := request(1, "a")
			done := make(chan error, 1)
			go func() {
				done <- slow.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Segmented, dlock.Fence{}), Requests: []*order.Request{r}})
			}()
			wait(t, "the order to have chosen the segment", g.reached)
			if _, _, ok := buySegments(t, s, "a", 1, time.Hour); !ok {
				t.Fatal("the unit was not sold")
			}
			want := int64(1)
			if restocked {
				want = 2
				if _, err := s.Restock(t.Context(), "a", 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			close(g.opened)
			if err := <-done; err != nil || (r.Err == nil) != restocked {
				t.Errorf("%v, %v", err, r.Err)
			}
			if short, ok := errors.AsType[*stock.ShortageError](r.Err); !restocked && (!ok || short.Shortages[0].Available != 0) {
				t.Errorf("%v", r.Err)
			}
			balanced(t, s, "a", want, 0)
		})
	}
}

// unlocked returns how many rows of the SKU nobody has locked in table, and locks them in tx.
func unlocked(t *testing.T, tx *sql.Tx, table string) (n int64) {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), "SELECT sku FROM "+table+" WHERE sku = 'a' FOR UPDATE SKIP LOCKED")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return n
}

// An order that one segment has enough for locks no other one, so that orders of a SKU are committed side
// by side. One that takesAcross its units has all locked before it takes any.
func TestLocksOfSegments(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	s, db := open(t, url, "one"), rawDB(t, url)
	create(t, s, "a", stock.SegmentedName, 3)
	for _, c := range []struct {
		quantity, locked int64
		gate             gate
	}{
		{1, 1, gate{after: "ledger"}},
		{2, 16, gate{before: "UPDATE sku"}},
	} {
		g := newGate(c.gate)
		gated, r := open(t, url, "gated", g), request(c.quantity, "a")
		done := make(chan error, 1)
		go func() {
			done <- gated.Commit(t.Context(), &order.Batch{Claims: claim("a", stock.Segmented, dlock.Fence{}), Requests: []*order.Request{r}})
		}()
		wait(t, "the order to have its locks", g.reached)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		free := int64(0)
		for _, table := range []string{"skus", "sku_segments"} {
			free += unlocked(t, tx, table)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if free != 16-c.locked {
			t.Errorf("an order of %d units leaves %d of 16 rows to others, want %d", c.quantity, free, 16-c.locked)
		}
		close(g.opened)
		if err := <-done; err != nil || r.Err != nil {
			t.Error(err, r.Err)
		}
	}
	balanced(t, s, "a", 3, 0)
}

// someUnits returns an order of one to most units of each of some SKUs, and perhaps of none.
func someUnits(skus []string, writes map[string]stock.Update, most int64) *order.Batch {
	r := request(1)
	b := &order.Batch{Requests: []*order.Request{r}}
	for _, sku := range skus {
		if rand.N(3) > 0 {
			r.Order.Items = append(r.Order.Items, order.Item{SKU: sku, Quantity: 1 + rand.N(most)})
			b.Claims = append(b.Claims, claim(sku, writes[sku], dlock.Fence{})...)
		}
	}
	return b
}

// endOrder pays, cancels or expires the nth order of a side: two of four are cancelled.
func endOrder(ctx context.Context, s *sqlstore.Store, id string, n int) error {
	switch n % 4 {
	case 0:
		return settle(ctx, s, id, order.Confirmed, "p1")
	case 1, 2:
		return settle(ctx, s, id, order.Cancelled, "")
	}
	_, err := insist(ctx, func() ([]order.Expiry, error) {
		e, err := s.Expire(ctx, []string{id})
		if err == nil && e[0].Again > 0 {
			err = stock.ErrBusy
		}
		return e, err
	})
	return err
}

// sellsAll buys what is left of a segmented SKU at another instance, and fails the test unless all units are sold then.
func sellsAll(t *testing.T, s, other *sqlstore.Store, sku string) {
	t.Helper()
	if n := levelOf(t, s, sku).Available(); n > 0 {
		if _, left, ok := buySegments(t, other, sku, n, time.Hour); !ok {
			t.Errorf("%d units of %s are left, and %d for sale", n, sku, left)
		}
	}
	if a := auditOf(t, s, sku); !a.OK() || a.Accepted() != a.Stocked {
		t.Errorf("%+v %q", a, a.Broken())
	}
}

// Large and small baskets take units of segmented SKUs in opposite orders. Meanwhile others are paid, cancelled,
// expired and restocked. None waits forever, and in the end all units are sold.
func TestLargeAndSmallBasketsOfSegments(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		count, skus := new(victims), []string{"a", "b", "c"}
		stores := []*sqlstore.Store{open(t, url, "one", count), open(t, url, "two", count)}
		writes := map[string]stock.Update{"a": stock.Segmented, "b": stock.Conditional, "c": stock.Segmented}
		for _, sku := range skus {
			create(t, stores[0], sku, soldBy(writes[sku]), 300)
		}
		var group sync.WaitGroup
		sides, rounds := 8, testbedtest.Size(25, 1000)
		for side := range sides {
			s, most := stores[side%2], int64(1)
			if side < 3 {
				most = 60
			}
			group.Go(func() {
				for n := range rounds {
					b := someUnits(skus, writes, most)
					if len(b.Claims) == 0 {
						continue
					}
					r := b.Requests[0]
					if n%4 == 3 {
						r.TTL = 0
					}
					if _, err := insist(t.Context(), func() (any, error) {
						return nil, s.Commit(t.Context(), b)
					}); err != nil {
						t.Error(err)
						return
					}
					if r.Err != nil {
						continue
					}
					err := endOrder(t.Context(), s, r.Order.ID, n)
					if err == nil && n%10 == 0 {
						_, err = insist(t.Context(), func() (stock.Level, error) {
							return s.Restock(t.Context(), skus[side%3], 1+rand.N(int64(20)), nil)
						})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		t.Logf("%d deadlocks, %d waits too long", count.deadlocks.Load(), count.waits.Load())
		if n := count.deadlocks.Load(); n > int64(sides*rounds/100) {
			t.Errorf("%d deadlocks of %d baskets", n, sides*rounds)
		}
		for _, sku := range []string{"a", "c"} {
			sellsAll(t, stores[0], stores[1], sku)
		}
		if a := auditOf(t, stores[0], "b"); !a.OK() {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}
