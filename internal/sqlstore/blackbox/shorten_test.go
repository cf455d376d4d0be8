package blackbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/timeout"
)

// The clock of the database is set back by a day, which is as if all rows were a day younger. Orders that wait, and their timers, have their
// time from now on. An order that is placed now keeps its own, however long it is, and so does one of a moment of another node's clock.
func TestClockOfTheDatabaseIsSetBack(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, raw := t.Context(), new(handle)
		s, q := timed(t, open(t, url, "one", raw))
		create(t, s, "a", "conditional", 100)
		pending, paid, queued := place(t, s, time.Hour, "a"), place(t, s, time.Hour, "a"), enqueue(t, s, "a", time.Minute)
		if err := settle(ctx, s, paid.ID, order.Confirmed, "p1"); err != nil {
			t.Fatal(err)
		}
		back := func(by time.Duration) {
			t.Helper()
			for update, by := range map[string]int64{
				"UPDATE orders SET created_at = created_at + ?, expires_at = expires_at + ?": by.Microseconds(),
				"UPDATE timeouts SET due_at = due_at + ?, next_at = next_at + ?":             by.Milliseconds(),
			} {
				if err := raw.db.Exec(update, by, by).Error; err != nil {
					t.Fatal(err)
				}
			}
		}
		read := func(id string) order.Order {
			t.Helper()
			o, err := s.Order(ctx, id, "")
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		late := enqueue(t, s, "a", time.Minute)
		back(24 * time.Hour)
		late, err := dequeue(t, s, late) // so it was queued before, and placed afterwards
		if err == nil {
			_, _, err = s.Extend(ctx, order.Target{ID: late.ID}, 3*time.Hour, 4*time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		another, long := place(t, s, time.Hour, "a"), place(t, s, 72*time.Hour, "a")
		back(20 * time.Second)
		kept := []order.Order{read(another.ID), read(long.ID), read(paid.ID)}

		refused := errors.New("another instance leads")
		if n, err := s.ShortenWaits(ctx, func(context.Context, timeout.Tx) error { return refused }, time.Hour); n != 0 || !errors.Is(err, refused) {
			t.Errorf("without the lead: %d, %v", n, err)
		}
		shortened(t, s, 3)
		for _, was := range []order.Order{pending, queued} {
			o := read(was.ID)
			if o.ExpiresAt.Sub(o.CreatedAt) != was.ExpiresAt.Sub(was.CreatedAt) || o.CreatedAt.Before(was.CreatedAt) || o.CreatedAt.After(place(t, s, time.Hour, "a").CreatedAt) {
				t.Errorf("%s: from %v to %v, placed at %v", was.Status, o.CreatedAt, o.ExpiresAt, was.CreatedAt)
			}
		}
		if o := read(late.ID); o.ExpiresAt.Sub(o.CreatedAt) != time.Hour || o.Status != order.Pending {
			t.Errorf("queued before and placed afterwards: %s, from %v to %v", o.Status, o.CreatedAt, o.ExpiresAt)
		}
		scheduled(t, q, read(pending.ID))
		if row, err := q.Get(ctx, order.PlaceTimer, queued.ID); err != nil || row.Due.After(time.Now().Add(time.Second)) {
			t.Errorf("the queued order is tried again at %v, %v", row.Due, err)
		}
		for _, o := range kept {
			if is := read(o.ID); !is.CreatedAt.Equal(o.CreatedAt) || !is.ExpiresAt.Equal(o.ExpiresAt) {
				t.Errorf("%s: from %v to %v, was from %v to %v", o.Status, is.CreatedAt, is.ExpiresAt, o.CreatedAt, o.ExpiresAt)
			}
		}
		shortened(t, s, 0)
	})
}

// shortened fails the test unless s shortens n waits.
func shortened(t *testing.T, s *sqlstore.Store, n int64) {
	t.Helper()
	var got int64
	_, err := insist(t.Context(), func() (any, error) {
		some, err := s.ShortenWaits(t.Context(), nil, time.Hour)
		got += some
		return nil, err
	})
	if err != nil || got != n {
		t.Errorf("%d waits are shortened, %v; want %d", got, err, n)
	}
}
