package blackbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// Of a payment, a cancellation and two expiries that meet at the moment when the
// order expires, exactly one settles it.
func TestPayAndExpireAtOneInstant(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		orders := testbedtest.Size(500, 10_000)
		skus, paid := []string{"conditional", "for-update"}, make(map[string]int64)
		for _, sku := range skus {
			create(t, s, sku, sku, int64(orders))
		}
		const together = 20
		fates := make(map[order.Status]int64)
		for round := range orders / together {
			sku := skus[round%2]
			batch := make([]*order.Request, together)
			for i := range batch {
				batch[i] = request(1, sku)
				batch[i].TTL = 40 * time.Millisecond
			}
			if err := s.Commit(t.Context(), &order.Batch{Claims: claim(sku, stock.Conditional, dlock.Fence{}), Requests: batch}); err != nil {
				t.Fatal(err)
			}
			meet(t, s, batch)
			for _, r := range batch {
				o, err := s.Order(t.Context(), r.Order.ID, "")
				if err != nil {
					t.Fatal(err)
				}
				if fates[o.Status]++; o.Status == order.Confirmed {
					paid[sku]++
				}
			}
		}
		t.Logf("%v", fates)
		if fates[order.Pending] > 0 {
			t.Errorf("%d orders are still open", fates[order.Pending])
		}
		for _, sku := range skus {
			balanced(t, s, sku, 0, paid[sku])
			if l, err := s.Level(t.Context(), sku); err != nil || l.Reserved != 0 {
				t.Errorf("%d units of %s are reserved for nobody, %v", l.Reserved, sku, err)
			}
		}
	})
}

// meet pays some of the orders and cancels the others, from just before to just after they expire. Two sides expire all
// of them until they are final. The database's clock decides who is late.
func meet(t *testing.T, s *sqlstore.Store, batch []*order.Request) {
	t.Helper()
	ctx := t.Context()
	var group sync.WaitGroup
	ids := make([]string, len(batch))
	for i, r := range batch {
		ids[i] = r.Order.ID
		to, payment := order.Confirmed, "p"
		if i%4 == 1 {
			to, payment = order.Cancelled, ""
		}
		around := time.Duration(i-len(batch)/2) * time.Millisecond
		group.Go(func() {
			<-time.After(time.Until(r.Order.ExpiresAt) + around)
			if err := settle(ctx, s, r.Order.ID, to, payment); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		group.Go(func() {
			<-time.After(time.Until(batch[0].Order.ExpiresAt) - 5*time.Millisecond)
			for open := true; open; {
				found, err := insist(ctx, func() ([]order.Expiry, error) { return s.Expire(ctx, ids) })
				if err != nil {
					t.Error(err)
					return
				}
				open = false
				for _, e := range found {
					open = open || e.Status == order.Pending || e.Again > 0
				}
			}
		})
	}
	group.Wait()
}

// settle pays or cancels an order, or finds that it is final.
func settle(ctx context.Context, s *sqlstore.Store, id string, to order.Status, payment string) error {
	_, err := insist(ctx, func() (any, error) {
		_, _, err := s.Settle(ctx, order.Target{ID: id}, to, payment)
		return nil, err
	})
	return err
}

// Baskets that expire, orders that are placed and orders that are cancelled take
// the same rows, and none is left waiting for another.
func TestExpireDuringASale(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		skus := []string{"a", "b", "c", "d"}
		for _, sku := range skus {
			create(t, s, sku, "conditional", 100_000)
		}
		rounds := testbedtest.Size(5, 200)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for range rounds {
					var ids []string
					for n := range 8 {
						ids = append(ids, place(t, s, 0, skus[n%3:]...).ID)
					}
					expire(t, s, ids...)
				}
			})
			group.Go(func() {
				for range 4 * rounds {
					o := place(t, s, time.Hour, skus...)
					if err := settle(t.Context(), s, o.ID, order.Cancelled, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		for _, sku := range skus {
			balanced(t, s, sku, 0, 0)
		}
	})
}

// overdueOrder places an order that is overdue at once on servers that lock rows. f gets the database of another instance, too.
func overdueOrder(t *testing.T, f func(t *testing.T, other *gorm.DB, s *sqlstore.Store, id string)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"mariadb": testbedtest.Database, "postgresql": testbedtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, url := new(handle), database(t)
			open(t, url, "other", raw)
			s := open(t, url, "one")
			create(t, s, "a", "conditional", 2)
			f(t, raw.db, s, place(t, s, 0, "a").ID)
			balanced(t, s, "a", 0, 0)
		})
	}
}

// An expiry does not wait for an order whose row another transaction has, such as that of its payment, and does not end it.
func TestExpiryLeavesAHeldOrder(t *testing.T) {
	t.Parallel()
	overdueOrder(t, func(t *testing.T, other *gorm.DB, s *sqlstore.Store, id string) {
		release := lockRow(t, other, "SELECT id FROM orders WHERE id = ?", id)
		if found, err := s.Expire(t.Context(), []string{id}); err != nil || found[0].Again == 0 {
			t.Errorf("%+v, %v; want it to be tried again", found, err)
		}
		release()
		expire(t, s, id)
	})
}

// An instance that is paused in a transaction, with its connection open, keeps its orders from others for some seconds,
// however long the pause.
func TestWhoStopsInATransactionIsCutOff(t *testing.T) {
	t.Parallel()
	overdueOrder(t, func(t *testing.T, other *gorm.DB, s *sqlstore.Store, id string) {
		tx := other.Begin()
		defer tx.Rollback()
		if err := tx.Exec("UPDATE orders SET status = ? WHERE id = ?", string(order.Expired), id).Error; err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		expire(t, s, id)
		t.Logf("expired after %v", time.Since(began).Round(time.Millisecond))
		if err := tx.Exec("UPDATE skus SET reserved = reserved - 1 WHERE sku = 'a'").Error; err == nil {
			err = tx.Commit().Error
			t.Errorf("the transaction went on after its orders were taken over, %v", err)
		}
	})
}
