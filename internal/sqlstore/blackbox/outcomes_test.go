package blackbox_test

import (
	"testing"
	"time"

	"example.com/shop/internal/order"
)

// The ledger has, for each order of a SKU, whether and when its units were released, and how often it ended. Orders of
// other SKUs are not among them.
func TestFates(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		create(t, s, "b", "conditional", 10)
		expired, paid, open := place(t, s, 0, "a"), place(t, s, time.Hour, "a", "b"), place(t, s, 2*time.Hour, "a")
		place(t, s, time.Hour, "b")
		expire(t, s, expired.ID)
		expire(t, s, expired.ID)
		if _, _, err := s.Settle(ctx, order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		now, fates, err := s.Fates(ctx, "a")
		if err != nil || len(fates) != 3 {
			t.Fatalf("%d orders of 3, %v", len(fates), err)
		}
		for i, want := range []struct {
			order.Order
			releases, payments int
		}{{expired, 1, 0}, {paid, 0, 1}, {open, 0, 0}} {
			f := fates[i]
			if f.OrderID != want.ID || !f.ExpiresAt.Equal(want.ExpiresAt) || f.Releases != want.releases || f.Payments != want.payments || f.Twice() {
				t.Errorf("%d: %+v, want %s: %d releases, %d payments", i, f, want.ID, want.releases, want.payments)
			}
			if f.ReleasedAt.IsZero() == (f.Releases > 0) {
				t.Errorf("%d: %d releases, the first at %v", i, f.Releases, f.ReleasedAt)
			}
		}
		if at := fates[0].ReleasedAt; at.Before(expired.ExpiresAt) || at.After(now) {
			t.Errorf("released at %v, expired at %v, read at %v", at, expired.ExpiresAt, now)
		}
		if _, none, err := s.Fates(ctx, "c"); err != nil || len(none) != 0 {
			t.Errorf("%v of an unknown SKU, %v", none, err)
		}
	})
}

// An order whose outcome is looked up after it has expired is answered as it was stored, and so is a queued one.
func TestLateOutcomeIsThatOfTheTransaction(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 10)
		placed, queued := request(1, "a"), request(1, "a")
		placed.TTL, queued.TTL = 0, 0
		commit := func() error {
			return s.Commit(ctx, &order.Batch{Claims: conditionally("a"), Requests: []*order.Request{placed}})
		}
		enqueue := func() error { return s.Enqueue(ctx, queued, time.Hour) }
		for _, c := range []struct {
			do          func() error
			r           *order.Request
			first, then order.Status
		}{{commit, placed, order.Pending, order.Expired}, {enqueue, queued, order.Queued, order.Rejected}} {
			if err := c.do(); err != nil || c.r.Err != nil {
				t.Fatal(err, c.r.Err)
			}
			if o, err := s.Order(ctx, c.r.Order.ID, ""); err != nil || o.Status != c.then {
				t.Fatalf("%s is %s, %v, want %s", c.r.Order.ID, o.Status, err, c.then)
			}
			stored := c.r.Order
			c.r.Answered, c.r.Uncertain, c.r.Order.Status = false, true, ""
			if err := c.do(); err != nil || c.r.Err != nil || c.r.Order.Status != c.first || !c.r.Order.ExpiresAt.Equal(stored.ExpiresAt) {
				t.Errorf("the late answer is %+v, %v, %v, want %+v", c.r.Order, err, c.r.Err, stored)
			}
		}
	})
}

// An order or timer that ends twice is found, in any combination.
func TestAFateOfTwoEnds(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		db := rawDB(t, url)
		create(t, s, "a", "conditional", 10)
		o := place(t, s, 0, "a")
		expire(t, s, o.ID)
		for _, movement := range []string{"RELEASE", "CONFIRM"} {
			const again = "INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at) VALUES ('a', ?, ?, 1, 0, 0, 0, '', 1)"
			if _, err := db.ExecContext(ctx, again, o.ID, movement); err != nil {
				t.Fatal(err)
			}
			if _, fates, err := s.Fates(ctx, "a"); err != nil || len(fates) != 1 || !fates[0].Twice() {
				t.Errorf("a second end by %s: %+v, %v", movement, fates, err)
			}
			if _, err := db.ExecContext(ctx, "DELETE FROM ledger WHERE created_at = 1"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
