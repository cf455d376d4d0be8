package blackbox_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// enqueue queues an order of one unit of sku that is to be placed within life.
func enqueue(t testing.TB, s *sqlstore.Store, sku string, life time.Duration) order.Order {
	t.Helper()
	r := request(1, sku)
	r.TTL = life
	if err := s.Enqueue(t.Context(), r, time.Second); err != nil {
		t.Fatal(err)
	}
	return r.Order
}

// dequeue tries to place a queued order, and returns why it was not.
func dequeue(t testing.TB, s *sqlstore.Store, o order.Order) (order.Order, error) {
	t.Helper()
	r := &order.Request{Order: o, TTL: time.Hour, Queued: true}
	claims := claim(o.Items[0].SKU, stock.Conditional, dlock.Fence{})
	if _, err := insist(t.Context(), func() (any, error) {
		return nil, s.Commit(t.Context(), &order.Batch{Claims: claims, Requests: []*order.Request{r}})
	}); err != nil {
		t.Fatal(err)
	}
	return r.Order, r.Err
}

// has fails the test unless the order has the timers of kinds and no other.
func has(t *testing.T, q *timeout.Queue, id string, kinds ...string) {
	t.Helper()
	var got []string
	for _, kind := range []string{order.PlaceTimer, order.ExpireTimer} {
		_, err := q.Get(t.Context(), kind, id)
		if err == nil {
			got = append(got, kind)
		} else if !errors.Is(err, timeout.ErrNotFound) {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(kinds, got); diff != "" {
		t.Errorf("timers of %s (-want +got):\n%s", id, diff)
	}
}

// decided fails the test unless a queued order has the status want and keeps it.
func decided(t *testing.T, s *sqlstore.Store, id string, want order.Status) {
	t.Helper()
	o, err := s.Order(t.Context(), id, "")
	if err != nil || o.Status != want || want == order.Rejected && o.Reason == "" || want != order.Rejected && o.Reason != "" {
		t.Errorf("%+v, want %s, %v", o, want, err)
	}
	again, err := dequeue(t, s, o)
	moved, ok := errors.AsType[*order.StateError](err)
	if !ok || cmp.Diff(o, moved.Order) != "" {
		t.Errorf("%s again: %+v, %v", want, again, err)
	}
	if want == order.Pending {
		return
	}
	for _, to := range []order.Status{order.Confirmed, order.Cancelled} {
		if _, changed, err := s.Settle(t.Context(), order.Target{ID: id}, to, "p1"); changed || err != nil {
			t.Errorf("%s to %s: changed %v, %v", want, to, changed, err)
		}
	}
}

// A queued order holds no units and has no ledger entry until it is placed. It leaves the queue once, with the timers
// that belong to that way out.
func TestLifeOfAQueuedOrder(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx := t.Context()
		s, q := timed(t, open(t, url, "one"))
		create(t, s, "a", "conditional", 1)
		placed, late, rejected := enqueue(t, s, "a", time.Hour), enqueue(t, s, "a", 0), enqueue(t, s, "a", time.Hour)
		cancelled := enqueue(t, s, "a", time.Hour)
		for _, o := range []order.Order{placed, rejected, cancelled} {
			if got, err := s.Order(ctx, o.ID, "c1"); err != nil || cmp.Diff(o, got) != "" || o.Status != order.Queued {
				t.Errorf("%+v, %v", got, err)
			}
			has(t, q, o.ID, order.PlaceTimer)
		}
		if row, err := q.Get(ctx, order.PlaceTimer, placed.ID); err != nil || row.Due.Sub(placed.CreatedAt.Add(time.Second)).Abs() > time.Millisecond {
			t.Errorf("due %v, placed at %v, %v", row.Due, placed.CreatedAt, err)
		}
		balanced(t, s, "a", 0, 0)

		got, err := dequeue(t, s, placed)
		if err != nil || got.Status != order.Pending || !got.CreatedAt.Equal(placed.CreatedAt) || got.ExpiresAt.Sub(got.CreatedAt) < time.Hour {
			t.Errorf("%+v, %v", got, err)
		}
		if stored, err := s.Order(ctx, placed.ID, ""); err != nil || cmp.Diff(got, stored) != "" {
			t.Errorf("answered %+v, stored %+v, %v", got, stored, err)
		}
		has(t, q, placed.ID, order.ExpireTimer)
		if _, err := dequeue(t, s, rejected); err == nil {
			t.Error("two units of one were sold")
		}
		has(t, q, rejected.ID, order.PlaceTimer)
		for range 2 {
			if err := s.Reject(ctx, rejected.ID, order.OutOfStock); err != nil {
				t.Fatal(err)
			}
			if err := s.Reject(ctx, placed.ID, order.OutOfStock); err != nil {
				t.Fatal(err)
			}
		}
		if o, changed, err := s.Settle(ctx, order.Target{ID: cancelled.ID}, order.Cancelled, ""); err != nil || !changed || o.Status != order.Cancelled {
			t.Errorf("%+v, changed %v, %v", o, changed, err)
		}
		for id, want := range map[string]order.Status{
			placed.ID: order.Pending, rejected.ID: order.Rejected, late.ID: order.Rejected, cancelled.ID: order.Cancelled,
		} {
			decided(t, s, id, want)
		}
		has(t, q, rejected.ID)
		has(t, q, cancelled.ID)
		if _, err := dequeue(t, s, request(1, "a").Order); !errors.Is(err, order.ErrNotFound) {
			if _, ok := errors.AsType[*stock.ShortageError](err); !ok {
				t.Errorf("an order that was never queued: %v", err)
			}
		}
		balanced(t, s, "a", 1, 0)
	})
}

// A placement, a cancellation and a rejection meet at a queued order, and a second placement: exactly one settles it,
// and the ledger says which.
func TestQueuedOrderIsDecidedOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		stores := []*sqlstore.Store{open(t, url, "one"), open(t, url, "two")}
		s, orders := stores[0], testbedtest.Size(250, 10_000)
		create(t, s, "a", "conditional", int64(orders))
		const together = 10
		fates, placements := make(map[order.Status]int), 0
		for range orders / together {
			var group sync.WaitGroup
			var batch []order.Order
			won := make([][4]bool, together)
			for n := range together {
				o := enqueue(t, s, "a", time.Hour)
				batch = append(batch, o)
				for i, side := range stores {
					group.Go(func() {
						_, err := dequeue(t, side, o)
						if _, moved := errors.AsType[*order.StateError](err); err != nil && !moved {
							t.Error(err)
						}
						won[n][i] = err == nil
					})
				}
				group.Go(func() {
					o, err := insist(t.Context(), func() (order.Order, error) {
						o, _, err := stores[n%2].Settle(t.Context(), order.Target{ID: o.ID}, order.Cancelled, "")
						return o, err
					})
					if err != nil || o.Status == order.Pending {
						t.Errorf("%s after it was cancelled: %v", o.Status, err)
					}
				})
				group.Go(func() {
					if _, err := insist(t.Context(), func() (any, error) {
						return nil, stores[(n+1)%2].Reject(t.Context(), o.ID, order.OutOfStock)
					}); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			for n, o := range batch {
				stored, err := s.Order(t.Context(), o.ID, "")
				if err != nil {
					t.Fatal(err)
				}
				events, err := s.Events(t.Context(), o.ID, "")
				if err != nil {
					t.Fatal(err)
				}
				fates[stored.Status]++
				placed := won[n][0] || won[n][1]
				if placed {
					placements++
				}
				if won[n][0] && won[n][1] || stored.Status == order.Pending || placed && stored.Status == order.Rejected || placed != (len(events) == 2) {
					t.Errorf("%s, placed by %v, %d events", stored.Status, won[n][:2], len(events))
				}
			}
		}
		t.Logf("%v, %d of them placed before", fates, placements)
		balanced(t, s, "a", 0, 0)
	})
}

// A queued order that was not placed holds nothing, and the audit returns an error for an unknown state.
func TestAuditOfEveryState(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 9)
		o := enqueue(t, s, "a", time.Hour)
		for _, status := range order.Statuses() {
			if err := raw.db.Exec("UPDATE orders SET status = ? WHERE id = ?", string(status), o.ID).Error; err != nil {
				t.Fatal(err)
			}
			a := auditOf(t, s, "a")
			if holds := status == order.Pending || status == order.Confirmed; a.OK() == holds || a.Accepted() > 0 != holds {
				t.Errorf("%s without a movement in the ledger: %+v %q", status, a, a.Broken())
			}
		}
		if err := raw.db.Exec("UPDATE orders SET status = 'SHIPPED' WHERE id = ?", o.ID).Error; err != nil {
			t.Fatal(err)
		}
		for _, sku := range []string{"a", ""} {
			if audits, err := s.Audit(t.Context(), sku); err == nil {
				t.Errorf("an unknown state passes: %+v", audits)
			}
		}
	})
}
