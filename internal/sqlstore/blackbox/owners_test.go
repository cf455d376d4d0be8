package blackbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Orders of others are not there, whatever is asked for, and nothing happens to them.
func TestOwnersSeeTheirOrdersOnly(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 9)
		pending, queued := place(t, s, time.Hour, "a"), enqueue(t, s, "a", time.Hour)
		for _, o := range []order.Order{pending, queued} {
			for _, id := range []string{o.ID, order.NewID()} {
				for _, owner := range []string{"c2", "C1", "c", "' OR '1'='1"} {
					target := order.Target{ID: id, Owner: owner, Key: keyed("POST /"+id, owner, "")}
					for name, do := range map[string]func() error{
						"order":  func() error { _, err := s.Order(ctx, id, owner); return err },
						"events": func() error { _, err := s.Events(ctx, id, owner); return err },
						"pay":    func() error { _, _, err := s.Settle(ctx, target, order.Confirmed, "p1"); return err },
						"cancel": func() error { _, _, err := s.Settle(ctx, target, order.Cancelled, ""); return err },
						"extend": func() error { _, _, err := s.Extend(ctx, target, time.Minute, 4*time.Hour); return err },
					} {
						if err := do(); !errors.Is(err, order.ErrNotFound) {
							t.Errorf("%s by %q: %v", name, owner, err)
						}
					}
					if p, err := s.Orders(ctx, order.Filter{Owner: owner, Limit: 10}); err != nil || len(p.Orders) != 0 {
						t.Errorf("%q sees %+v, %v", owner, p, err)
					}
				}
			}
			if got, err := s.Order(ctx, o.ID, "c1"); err != nil || cmp.Diff(o, got) != "" {
				t.Errorf("%+v became %+v, %v", o, got, err)
			}
		}
		mine := order.Target{ID: pending.ID, Owner: "c1"}
		if _, changed, err := s.Extend(ctx, mine, time.Minute, 4*time.Hour); err != nil || !changed {
			t.Error(changed, err)
		}
		if _, changed, err := s.Settle(ctx, mine, order.Cancelled, ""); err != nil || !changed {
			t.Error(changed, err)
		}
		balanced(t, s, "a", 0, 0)
	})
}

// The history of an order is what the ledger says, in its order.
func TestEvents(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "redis", 9)
		create(t, s, "b", "redis", 9)
		r := request(2, "a", "b")
		claims := append(claim("a", stock.Fenced, fence(7)), claim("b", stock.Conditional, dlock.Fence{})...)
		if err := s.Commit(ctx, &order.Batch{Claims: claims, Requests: []*order.Request{r}}); err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		place(t, s, time.Hour, "a")
		if _, _, err := open(t, url, "two").Settle(ctx, order.Target{ID: r.Order.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(ctx, r.Order.ID, "c1")
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if e.At.Before(r.Order.CreatedAt) || time.Since(e.At) > time.Hour {
				t.Errorf("%d: at %v", i, e.At)
			}
			events[i].At = time.Time{}
		}
		want := []order.Event{
			{Movement: stock.Reserve, SKU: "a", Quantity: 2, Fence: 7, Instance: "one"},
			{Movement: stock.Reserve, SKU: "b", Quantity: 2, Instance: "one"},
			{Movement: stock.Confirm, SKU: "a", Quantity: 2, Instance: "two"},
			{Movement: stock.Confirm, SKU: "b", Quantity: 2, Instance: "two"},
		}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
