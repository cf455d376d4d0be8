package blackbox_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// timed returns s with a queue of its timers.
func timed(t testing.TB, s *sqlstore.Store) (*sqlstore.Store, *timeout.Queue) {
	t.Helper()
	timers, err := s.Timers()
	if err != nil {
		t.Fatal(err)
	}
	q, err := timeout.New(timers, memindex.New(memindex.Config{}), timeout.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s.WithTimers(q), q
}

// scheduled fails the test unless o has a timer that is due when o expires.
func scheduled(t *testing.T, q *timeout.Queue, o order.Order) {
	t.Helper()
	row, err := q.Get(t.Context(), order.ExpireTimer, o.ID)
	if err != nil {
		t.Errorf("%s %s: %v", o.Status, o.ID, err)
		return
	}
	if late := row.Due.Sub(o.ExpiresAt); late < 0 || late >= time.Millisecond || row.State != timeout.Open {
		t.Errorf("%s %s: %s, due %v after it expires", o.Status, o.ID, row.State, late)
	}
}

// unscheduled fails the test if the order has a timer.
func unscheduled(t *testing.T, q *timeout.Queue, id string) {
	t.Helper()
	if row, err := q.Get(t.Context(), order.ExpireTimer, id); !errors.Is(err, timeout.ErrNotFound) {
		t.Errorf("%s: %+v, %v", id, row, err)
	}
}

// An order and its timer are one: both are stored or neither is, and the timer
// goes when the order is final.
func TestTimersFollowTheirOrders(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx := t.Context()
		s, q := timed(t, open(t, url, "one"))
		create(t, s, "a", "conditional", 4)
		paid, cancelled := place(t, s, time.Hour, "a"), place(t, s, time.Hour, "a")
		expired, extended := place(t, s, 0, "a"), place(t, s, time.Hour, "a")
		refused := request(1, "a")
		if err := s.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{refused}}); err != nil || refused.Err == nil {
			t.Fatalf("a fifth unit of four was sold, %v", err)
		}
		for _, o := range []order.Order{paid, cancelled, expired, extended} {
			scheduled(t, q, o)
		}
		unscheduled(t, q, refused.Order.ID)

		if _, _, err := s.Settle(ctx, order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Settle(ctx, order.Target{ID: cancelled.ID}, order.Cancelled, ""); err != nil {
			t.Fatal(err)
		}
		longer, _, err := s.Extend(ctx, order.Target{ID: extended.ID}, time.Hour, 4*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		expire(t, s, expired.ID, longer.ID)
		for _, o := range []order.Order{paid, cancelled, expired} {
			unscheduled(t, q, o.ID)
		}
		scheduled(t, q, longer)
	})
}

// The timer of an order is rolled back with it: here the stock row vanishes
// under the transaction that expires it.
func TestTimersSurviveAnExpiryThatFails(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s, q := timed(t, open(t, url, "one", raw))
		create(t, s, "a", "conditional", 4)
		o := place(t, s, 0, "a")
		rename := func(from, to string) {
			t.Helper()
			if err := raw.db.Exec("UPDATE skus SET sku = ? WHERE sku = ?", to, from).Error; err != nil {
				t.Fatal(err)
			}
		}
		rename("a", "b")
		if found, err := s.Expire(t.Context(), []string{o.ID}); !errors.Is(err, stock.ErrNotFound) {
			t.Fatal(found, err)
		}
		scheduled(t, q, o)
		rename("b", "a")
		expire(t, s, o.ID)
		unscheduled(t, q, o.ID)
		balanced(t, s, "a", 0, 0)
	})
}

// A lost reply to the COMMIT of an order leaves one order with one timer.
func TestLostReplyLeavesOneTimer(t *testing.T) {
	t.Parallel()
	plain, proxy := proxied(t)
	s, q := timed(t, plain)
	create(t, s, "a", "conditional", 10)
	proxy.DropReply("COMMIT")
	o := place(t, s, time.Hour, "a")
	scheduled(t, q, o)
	proxy.DropReply("COMMIT")
	if _, _, err := s.Settle(t.Context(), order.Target{ID: o.ID}, order.Cancelled, ""); err != nil {
		t.Fatal(err)
	}
	unscheduled(t, q, o.ID)
	if n := proxy.Dropped(); n != 2 {
		t.Fatalf("%d replies were dropped, want 2", n)
	}
}

// Orders that were placed before there were timers get theirs with the schema.
func TestMigrationSchedulesWhatIsOpen(t *testing.T) {
	t.Parallel()
	formerEngines(t, func(t *testing.T, url string) {
		raw := new(handle)
		before := open(t, url, "one", raw)
		create(t, before, "a", "conditional", 4)
		open, paid := place(t, before, time.Hour, "a"), place(t, before, time.Hour, "a")
		if _, _, err := before.Settle(t.Context(), order.Target{ID: paid.ID}, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		s, q := timed(t, before)
		later := place(t, s, time.Hour, "a")
		unscheduled(t, q, open.ID)
		if err := raw.db.Exec("DELETE FROM schema_migrations WHERE version > 1").Error; err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		scheduled(t, q, open)
		scheduled(t, q, later)
		unscheduled(t, q, paid.ID)
	})
}
