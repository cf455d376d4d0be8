package blackbox_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func TestLifeOfAnOrder(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		paid, cancelled := request(3, "a"), request(2, "a")
		for _, r := range []*order.Request{paid, cancelled} {
			if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
		}
		got, err := s.Order(ctx, paid.Order.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(paid.Order, got); diff != "" {
			t.Errorf("stored order differs (-answered +stored):\n%s", diff)
		}
		if _, changed, err := s.Settle(ctx, order.Target{ID: paid.Order.ID}, order.Confirmed, "p1"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		if _, changed, err := s.Settle(ctx, order.Target{ID: cancelled.Order.ID}, order.Cancelled, ""); err != nil || !changed {
			t.Fatal(changed, err)
		}
		o, changed, err := s.Settle(ctx, order.Target{ID: paid.Order.ID}, order.Cancelled, "")
		if err != nil || changed || o.Status != order.Confirmed || o.PaymentID != "p1" {
			t.Errorf("cancel a paid order: %v, changed %v, %v", o, changed, err)
		}
		if _, err := s.Restock(ctx, "a", 5, nil); err != nil {
			t.Fatal(err)
		}
		a := auditOf(t, s, "a")
		want := stock.Audit{SKU: "a", Strategy: "conditional", OnHand: 12, Stocked: 15, LedgerOnHand: 12, Sold: 3, Checked: 6}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("audit (-want +got):\n%s", diff)
		}
	})
}

func TestExpiredOrderIsNeitherPaidNorCancelled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 1)
		r := request(1, "a")
		r.TTL = 0
		if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil {
			t.Fatal(err)
		}
		for _, to := range []order.Status{order.Confirmed, order.Cancelled} {
			if o, changed, err := s.Settle(ctx, order.Target{ID: r.Order.ID}, to, "p"); err != nil || changed || o.Status != order.Expired {
				t.Errorf("%s: %s, changed %v, %v", to, o.Status, changed, err)
			}
		}
	})
}

func TestBasketIsAllOrNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		for _, w := range []stock.Update{stock.WriteBack, stock.Conditional, stock.Version, stock.RowLock, stock.Fenced} {
			a, b := "a-"+string(rune('0'+w)), "b-"+string(rune('0'+w))
			create(t, s, a, "conditional", 5)
			create(t, s, b, "conditional", 1)
			claims := append(claim(a, w, fence(1)), claim(b, w, fence(1))...)
			r := request(2, a, b)
			if err := s.Commit(ctx, &order.Batch{Claims: claims, Requests: []*order.Request{r}}); err != nil {
				t.Fatal(err)
			}
			short, ok := errors.AsType[*stock.ShortageError](r.Err)
			want := []stock.Shortage{{SKU: b, Requested: 2, Available: 1}}
			if !ok || cmp.Diff(want, short.Shortages) != "" {
				t.Errorf("write %d: %v", w, r.Err)
			}
			for _, sku := range []string{a, b} {
				if l, err := s.Level(ctx, sku); err != nil || l.Reserved != 0 {
					t.Errorf("write %d: %s has %d reserved, %v", w, sku, l.Reserved, err)
				}
			}
			if _, err := s.Order(ctx, r.Order.ID, ""); !errors.Is(err, order.ErrNotFound) {
				t.Errorf("write %d: the refused order exists: %v", w, err)
			}
		}
	})
}

func TestBatchOfOneSKU(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		for _, w := range []stock.Update{stock.WriteBack, stock.Conditional, stock.Version, stock.RowLock, stock.Fenced} {
			sku := "a-" + string(rune('0'+w))
			create(t, s, sku, "conditional", 4)
			batch := []*order.Request{request(2, sku), request(3, sku), request(2, sku), request(1, sku)}
			if err := s.Commit(ctx, &order.Batch{Claims: claim(sku, w, fence(1)), Requests: batch}); err != nil {
				t.Fatal(err)
			}
			var accepted []bool
			for _, r := range batch {
				accepted = append(accepted, r.Err == nil)
			}
			if diff := cmp.Diff([]bool{true, false, true, false}, accepted); diff != "" {
				t.Errorf("write %d (-want +got):\n%s", w, diff)
			}
			if a := auditOf(t, s, sku); !a.OK() || a.Open != 4 {
				t.Errorf("write %d: %+v %q", w, a, a.Broken())
			}
		}
	})
}

func TestCommitCanBeRepeated(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		r := request(1, "a")
		for range 2 {
			if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
		}
		if a := auditOf(t, s, "a"); !a.OK() || a.Open != 1 {
			t.Errorf("%+v %q", a, a.Broken())
		}
	})
}
