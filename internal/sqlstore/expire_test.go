package sqlstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/testbed/testbedtest"
)

// place stores an order of one unit of each SKU that expires after ttl.
func place(t testing.TB, s *sqlstore.Store, ttl time.Duration, skus ...string) order.Order {
	t.Helper()
	r := request(1, skus...)
	r.TTL = ttl
	var claims []stock.Claim
	for _, sku := range skus {
		claims = append(claims, claim(sku, stock.Conditional, dlock.Fence{})...)
	}
	if err := s.Commit(t.Context(), claims, []*order.Request{r}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return r.Order
}

// balanced fails the test unless the books of sku are in order with so many
// units in open orders and so many sold.
func balanced(t *testing.T, s *sqlstore.Store, sku string, open, sold int64) {
	t.Helper()
	if a := auditOf(t, s, sku); !a.OK() || a.Open != open || a.Sold != sold {
		t.Errorf("%s: %d open and %d sold, want %d and %d: %+v %q", sku, a.Open, a.Sold, open, sold, a, a.Broken())
	}
}

// expire expires one batch and returns the states that were found.
func expire(t testing.TB, s *sqlstore.Store, ids ...string) []order.Expiry {
	t.Helper()
	found, err := s.Expire(t.Context(), ids)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("%d answers for %d orders, %v", len(found), len(ids), err)
	}
	return found
}

// Each order of a batch is looked at by itself, and running the batch again
// changes nothing.
func TestExpireABatchOfAllSorts(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		create(t, s, "b", "conditional", 10)
		due, later, basket := place(t, s, 0, "a"), place(t, s, time.Hour, "a"), place(t, s, 0, "a", "b")
		paid, cancelled := place(t, s, time.Hour, "a"), place(t, s, time.Hour, "b")
		if _, changed, err := s.Settle(ctx, paid.ID, order.Confirmed, "p1"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if _, changed, err := s.Settle(ctx, cancelled.ID, order.Cancelled, ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		for _, try := range []string{"first", "again"} {
			found := expire(t, s, paid.ID, due.ID, order.NewID(), later.ID, cancelled.ID, basket.ID)
			for i, want := range []order.Status{order.Confirmed, order.Expired, "", order.Pending, order.Cancelled, order.Expired} {
				if found[i].Status != want {
					t.Errorf("%s, order %d: %q, want %q", try, i, found[i].Status, want)
				}
			}
			if d := found[3].Timer.Due.Sub(later.ExpiresAt); d < 0 || d >= time.Millisecond || found[3].Timer.ID != later.ID {
				t.Errorf("%s: %+v is not when the order expires, %v", try, found[3].Timer, later.ExpiresAt)
			}
			balanced(t, s, "a", 1, 1)
			balanced(t, s, "b", 0, 0)
		}
		if found, err := s.Expire(ctx, nil); err != nil || len(found) != 0 {
			t.Errorf("no orders: %v, %v", found, err)
		}
		for _, o := range []order.Order{due, basket} {
			if got, err := s.Order(ctx, o.ID); err != nil || got.Status != order.Expired {
				t.Errorf("%s: %s, %v", o.ID, got.Status, err)
			}
		}
	})
}

// Of a payment, a cancellation and two expiries that meet at the moment when the
// order expires, exactly one settles it.
func TestPayAndExpireAtOneInstant(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		orders := testbedtest.Size(500, 10_000)
		create(t, s, "a", "conditional", int64(orders))
		const together = 20
		fates := make(map[order.Status]int64)
		for range orders / together {
			batch := make([]*order.Request, together)
			for i := range batch {
				batch[i] = request(1, "a")
				batch[i].TTL = 40 * time.Millisecond
			}
			if err := s.Commit(t.Context(), claim("a", stock.Conditional, dlock.Fence{}), batch); err != nil {
				t.Fatal(err)
			}
			meet(t, s, batch)
			for _, r := range batch {
				o, err := s.Order(t.Context(), r.Order.ID)
				if err != nil {
					t.Fatal(err)
				}
				fates[o.Status]++
			}
		}
		t.Logf("%v", fates)
		if fates[order.Pending] > 0 {
			t.Errorf("%d orders are still open", fates[order.Pending])
		}
		balanced(t, s, "a", 0, fates[order.Confirmed])
		if l, err := s.Level(t.Context(), "a"); err != nil || l.Reserved != 0 {
			t.Errorf("%d units are reserved for nobody, %v", l.Reserved, err)
		}
	})
}

// meet pays some of the orders and cancels the others, from just before to just
// after the moment when they expire, and expires all of them from two sides until
// they are final. The database's clock decides who is late.
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
			if _, _, err := s.Settle(ctx, r.Order.ID, to, payment); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		group.Go(func() {
			<-time.After(time.Until(batch[0].Order.ExpiresAt) - 5*time.Millisecond)
			for open := true; open; {
				found, err := s.Expire(ctx, ids)
				if err != nil {
					t.Error(err)
					return
				}
				open = false
				for _, e := range found {
					open = open || e.Status == order.Pending
				}
			}
		})
	}
	group.Wait()
}

// handle is a gorm plugin that lends the connections of a store.
type handle struct{ db *gorm.DB }

func (*handle) Name() string { return "handle" }

func (h *handle) Initialize(db *gorm.DB) error {
	h.db = db
	return nil
}

// Units that were sold twice are given back like any others.
func TestOrdersOfAnOversoldSKUExpire(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "good", "conditional", 10)
		create(t, s, "oversold", "naive", 1)
		var ids []string
		for range 3 {
			r := request(1, "oversold")
			r.TTL = 0
			w := stock.Claim{SKU: "oversold", Write: stock.WriteBack}
			if err := s.Commit(t.Context(), []stock.Claim{w}, []*order.Request{r}); err != nil {
				t.Fatal(err)
			}
			if r.Err == nil {
				ids = append(ids, r.Order.ID)
			}
			// A lost update: the level forgets the order.
			if err := raw.db.Exec("UPDATE skus SET reserved = 0 WHERE sku = 'oversold'").Error; err != nil {
				t.Fatal(err)
			}
		}
		if len(ids) != 3 {
			t.Fatalf("%d orders of one unit were accepted; nothing is oversold", len(ids))
		}
		ids = append(ids, place(t, s, 0, "good").ID)
		for i, e := range expire(t, s, ids...) {
			if e.Status != order.Expired {
				t.Errorf("order %d: %q", i, e.Status)
			}
		}
		balanced(t, s, "good", 0, 0)
		l, err := s.Level(t.Context(), "oversold")
		if a := auditOf(t, s, "oversold"); err != nil || l.Reserved != -3 || a.Open != 0 || a.LedgerReserved != 0 || a.LostUpdates() != 3 {
			t.Errorf("%+v, %+v, %v", l, a, err)
		}
	})
}

// Baskets that expire, orders that are placed and orders that are cancelled take
// the same rows, and none is left waiting for another.
func TestExpireBesideASale(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		skus := []string{"a", "b", "c", "d"}
		for _, sku := range skus {
			create(t, s, sku, "conditional", 100_000)
		}
		rounds := testbedtest.Size(8, 200)
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
					if _, _, err := s.Settle(t.Context(), o.ID, order.Cancelled, ""); err != nil {
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

func TestExtend(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		o := place(t, s, time.Hour, "a")
		for n := range 3 {
			got, changed, err := s.Extend(ctx, o.ID, time.Hour, 4*time.Hour)
			if want := o.ExpiresAt.Add(time.Duration(n+1) * time.Hour); err != nil || !changed || !got.ExpiresAt.Equal(want) {
				t.Errorf("extension %d: %v, want %v; changed %v, %v", n, got.ExpiresAt, want, changed, err)
			}
		}
		before, err := s.Order(ctx, o.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, changed, err := s.Extend(ctx, o.ID, time.Microsecond, 4*time.Hour); err != nil || changed || !got.ExpiresAt.Equal(before.ExpiresAt) {
			t.Errorf("beyond its life: %+v, changed %v, %v", got, changed, err)
		}
		paid, expired := place(t, s, time.Hour, "a"), place(t, s, 0, "a")
		if _, _, err := s.Settle(ctx, paid.ID, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]order.Status{paid.ID: order.Confirmed, expired.ID: order.Expired} {
			if got, changed, err := s.Extend(ctx, id, time.Hour, 4*time.Hour); err != nil || changed || got.Status != want {
				t.Errorf("%s: %+v, changed %v, %v", want, got, changed, err)
			}
		}
		if _, _, err := s.Extend(ctx, order.NewID(), time.Hour, 4*time.Hour); !errors.Is(err, order.ErrNotFound) {
			t.Error(err)
		}
		// What was extended does not expire at the old moment.
		short := place(t, s, 100*time.Millisecond, "a")
		if _, changed, err := s.Extend(ctx, short.ID, time.Hour, 4*time.Hour); err != nil || !changed {
			t.Fatal(changed, err)
		}
		for time.Since(short.ExpiresAt) < 0 {
			if e := expire(t, s, short.ID); e[0].Status != order.Pending {
				t.Errorf("%s", e[0].Status)
			}
		}
		if e := expire(t, s, short.ID); e[0].Status != order.Pending {
			t.Errorf("after the old moment: %s", e[0].Status)
		}
	})
}

// The replies to COMMIT are lost: orders are expired once, and extended once.
func TestLostReplyToExpiry(t *testing.T) {
	s, proxy := proxied(t, 4)
	create(t, s, "a", "conditional", 10)
	ids := []string{place(t, s, 0, "a").ID, place(t, s, 0, "a").ID}
	proxy.DropReply("COMMIT")
	for _, e := range expire(t, s, ids...) {
		if e.Status != order.Expired {
			t.Errorf("%q", e.Status)
		}
	}
	balanced(t, s, "a", 0, 0)

	o := place(t, s, time.Hour, "a")
	proxy.DropReply("COMMIT")
	got, changed, err := s.Extend(t.Context(), o.ID, time.Minute, 4*time.Hour)
	if err != nil || !changed || got.ExpiresAt.Sub(o.ExpiresAt) != time.Minute {
		t.Errorf("extended by %v, changed %v, %v", got.ExpiresAt.Sub(o.ExpiresAt), changed, err)
	}
	if stored, err := s.Order(t.Context(), o.ID); err != nil || !stored.ExpiresAt.Equal(got.ExpiresAt) {
		t.Errorf("stored %v, answered %v, %v", stored.ExpiresAt, got.ExpiresAt, err)
	}
	if n := proxy.Dropped(); n != 2 {
		t.Fatalf("%d replies were dropped, want 2", n)
	}
}

