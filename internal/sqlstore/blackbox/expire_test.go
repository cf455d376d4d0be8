package blackbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
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
	if err := commitAlone(t, s, claims, r); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return r.Order
}

// commitAlone commits a request, again while another transaction has the row of its customer.
func commitAlone(t testing.TB, s *sqlstore.Store, claims []stock.Claim, r *order.Request) error {
	t.Helper()
	_, err := insist(t.Context(), func() (any, error) {
		err := s.Commit(t.Context(), &order.Batch{Claims: claims, Requests: []*order.Request{r}})
		if errors.Is(r.Err, order.ErrCustomerBusy) {
			err, r.Err, r.Answered = r.Err, nil, false
		}
		return nil, err
	})
	return err
}

// balanced fails the test unless the invariants of sku hold with so many units in open orders and so many sold.
func balanced(t *testing.T, s *sqlstore.Store, sku string, open, sold int64) {
	t.Helper()
	if a := auditOf(t, s, sku); !a.OK() || a.Open != open || a.Sold != sold {
		t.Errorf("%s: %d open and %d sold, want %d and %d: %+v %q", sku, a.Open, a.Sold, open, sold, a, a.Broken())
	}
}

// expire expires one batch and returns the states that were found. It tries locked orders again, as a queue does.
func expire(t testing.TB, s *sqlstore.Store, ids ...string) []order.Expiry {
	t.Helper()
	end := time.Now().Add(time.Minute)
	found, err := insist(t.Context(), func() ([]order.Expiry, error) { return s.Expire(t.Context(), ids) })
	for {
		if err != nil || len(found) != len(ids) {
			t.Fatalf("%d answers for %d orders, %v", len(found), len(ids), err)
		}
		var busy []int
		var again []string
		for i, e := range found {
			if e.Again > 0 {
				busy, again = append(busy, i), append(again, ids[i])
			}
		}
		if len(busy) == 0 {
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d orders are still busy", len(busy), len(ids))
		}
		<-time.After(5 * time.Millisecond)
		var rest []order.Expiry
		if rest, err = insist(t.Context(), func() ([]order.Expiry, error) { return s.Expire(t.Context(), again) }); err == nil {
			for i, j := range busy {
				found[j] = rest[i]
			}
		}
	}
}

// Each order of a batch is decided by itself, and running the batch again changes nothing.
func TestExpireABatchOfAllSorts(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		create(t, s, "b", "conditional", 10)
		due, later, basket := place(t, s, 0, "a"), place(t, s, time.Hour, "a"), place(t, s, 0, "a", "b")
		paid, cancelled := place(t, s, time.Hour, "a"), place(t, s, time.Hour, "b")
		if _, changed, err := s.Settle(ctx, order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if _, changed, err := s.Settle(ctx, order.Target{ID: cancelled.ID}, order.Cancelled, ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		for _, try := range []string{"first", "again"} {
			found := expire(t, s, paid.ID, due.ID, order.NewID(), later.ID, cancelled.ID, basket.ID)
			for i, want := range []order.Status{order.Confirmed, order.Expired, "", order.Pending, order.Cancelled, order.Expired} {
				if found[i].Status != want {
					t.Errorf("%s, order %d: %q, want %q", try, i, found[i].Status, want)
				}
			}
			returned := []string{"a"}
			if try == "again" {
				returned = nil
			}
			for i, want := range [][]string{nil, returned, nil, nil, nil, append(returned, returned...)} {
				if len(want) == 2 {
					want[1] = "b"
				}
				var skus []string
				if o := found[i].Ended; o != nil {
					if o.Status != order.Expired || o.CustomerID == "" {
						t.Errorf("%s: %+v has not expired", try, o)
					}
					for _, it := range o.Items {
						skus = append(skus, it.SKU)
					}
				}
				if diff := cmp.Diff(want, skus); diff != "" {
					t.Errorf("%s, units of order %d (-want +got):\n%s", try, i, diff)
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
			if got, err := s.Order(ctx, o.ID, ""); err != nil || got.Status != order.Expired {
				t.Errorf("%s: %s, %v", o.ID, got.Status, err)
			}
		}
	})
}

// handle is a gorm plugin that gives access to the connections of a store.
type handle struct{ db *gorm.DB }

func (*handle) Name() string { return "handle" }

func (h *handle) Initialize(db *gorm.DB) error {
	h.db = db
	return nil
}

// Units that were sold twice are released like any others.
func TestOrdersOfAnOversoldSKUExpire(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "good", "conditional", 10)
		create(t, s, "oversold", "naive", 1)
		var ids []string
		for range 3 {
			r := request(1, "oversold")
			r.TTL = 0
			w := stock.Claim{SKU: "oversold", Update: stock.WriteBack}
			if err := s.Commit(t.Context(), &order.Batch{Claims: []stock.Claim{w}, Requests: []*order.Request{r}}); err != nil {
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
