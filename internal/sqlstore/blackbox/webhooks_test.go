package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const deliver = "webhook"

// asLeader lets everybody begin a transaction.
func asLeader(context.Context, timeout.Tx) error { return nil }

// scheduleDeliveries returns the SKUs that have a timer afterwards, and how many are new.
func scheduleDeliveries(t *testing.T, s *sqlstore.Store, q *timeout.Queue) (skus []string, n int64) {
	t.Helper()
	n, err := s.ScheduleDeliveries(t.Context(), asLeader, deliver)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := q.List(t.Context(), timeout.Filter{Kind: deliver, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		skus = append(skus, r.ID)
	}
	slices.Sort(skus)
	return skus, n
}

// movements delivers what a SKU has not delivered, and returns it in words.
func movements(t *testing.T, s *sqlstore.Store, sku string) (words []string) {
	t.Helper()
	for {
		entries, err := s.Undelivered(t.Context(), sku, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return words
		}
		for _, e := range entries {
			words = append(words, fmt.Sprint(e.Movement, " ", e.Quantity, " ", e.Status))
		}
		if err := s.Delivered(t.Context(), sku, entries[len(entries)-1].ID); err != nil {
			t.Fatal(err)
		}
	}
}

// Each SKU with new entries gets one timer. Its entries are in the order of the ledger, with the status that the order had after each. Then
// the SKU gets no timer until there is another entry.
func TestDeliveriesFollowTheLedger(t *testing.T) {
	t.Parallel()
	variants(t, func(t *testing.T, url string) {
		raw := new(handle)
		s, q := timed(t, open(t, url, "one", raw))
		create(t, s, "a", "conditional", 10)
		create(t, s, "b", "conditional", 10)
		for _, to := range []order.Status{order.Pending, order.Confirmed, order.Cancelled, order.Expired} {
			endedOrder(t, s, to, "a", "b")
		}
		for _, n := range []int64{2, 0} { // not again while there is a timer
			if skus, more := scheduleDeliveries(t, s, q); !slices.Equal(skus, []string{"a", "b"}) || more != n {
				t.Errorf("timers of %q, %d new, want %d", skus, more, n)
			}
		}
		want := []string{
			"RESTOCK 10 ", "RESERVE 1 PENDING", "RESERVE 1 PENDING", "CONFIRM 1 CONFIRMED",
			"RESERVE 1 PENDING", "RELEASE 1 CANCELLED", "RESERVE 1 PENDING", "RELEASE 1 EXPIRED",
		}
		if diff := cmp.Diff(want, movements(t, s, "a")); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		if err := s.Delivered(t.Context(), "a", 1); err != nil { // by a sender that was paused
			t.Error(err)
		}
		if again := movements(t, s, "a"); len(again) > 0 {
			t.Errorf("delivered again: %q", again)
		}
		if err := q.Cancel(t.Context(), nil, deliver, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if skus, _ := scheduleDeliveries(t, s, q); !slices.Equal(skus, []string{"b"}) {
			t.Errorf("timers of %q, want b alone", skus)
		}
		endedOrder(t, s, order.Pending, "a")
		if skus, _ := scheduleDeliveries(t, s, q); !slices.Equal(skus, []string{"a", "b"}) {
			t.Errorf("timers of %q after another order of a", skus)
		}
		if err := raw.db.Exec("DELETE FROM webhooks").Error; err != nil { // while timers are left
			t.Fatal(err)
		}
		if err := s.Delivered(t.Context(), "a", 1); err != nil {
			t.Fatal(err)
		}
		if rest, err := s.Undelivered(t.Context(), "a", 1); err != nil || len(rest) != 1 || rest[0].ID <= 1 {
			t.Errorf("after entry 1 follows %+v, %v", rest, err)
		}
	})
}

// The clock of the database is set back by a day, which is as if its timers were a day younger. A delivery that would be tried more than ten
// minutes from now is tried now, unless an operator has to redrive it.
func TestClockSetBackDelaysNoDelivery(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s, q := timed(t, open(t, url, "one", raw))
		for _, sku := range []string{"dead", "late", "too-long", "paused"} {
			create(t, s, sku, "conditional", 10)
		}
		scheduleDeliveries(t, s, q)
		for sku, change := range map[string]string{
			"dead":     "state = 'DEAD', next_at = next_at + 86400000",
			"late":     "next_at = next_at + 86400000, due_at = due_at + 86400000",
			"too-long": "next_at = next_at + 660000",
			"paused":   "next_at = next_at + 540000",
		} {
			if err := raw.db.Exec("UPDATE timeouts SET "+change+" WHERE kind = ? AND id = ?", deliver, sku).Error; err != nil {
				t.Fatal(err)
			}
		}
		if _, n := scheduleDeliveries(t, s, q); n != 2 {
			t.Errorf("%d timers are new, want those of two SKUs", n)
		}
		for sku, late := range map[string]bool{"dead": true, "late": false, "too-long": false, "paused": true} {
			now, err := s.Now(t.Context())
			row, failed := q.Get(t.Context(), deliver, sku)
			if err := errors.Join(err, failed); err != nil || row.Next.After(now.Add(time.Second)) != late {
				t.Errorf("%s: at %v, now it is %v; %v", sku, row.Next, now, err)
			}
		}
	})
}

// What a webhook has not got is not deleted.
func TestPurgeKeepsWhatIsNotDelivered(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, q := timed(t, open(t, url, "one"))
		create(t, s, "a", "conditional", 10)
		endedOrder(t, s, order.Cancelled, "a")
		scheduleDeliveries(t, s, q)
		if n := purge(t, s, everything); n != 0 {
			t.Errorf("%d orders deleted before their delivery", n)
		}
		if got := movements(t, s, "a"); len(got) != 3 {
			t.Errorf("%q, want three movements", got)
		}
		endedOrder(t, s, order.Cancelled, "a")
		if n := purge(t, s, everything); n != 1 {
			t.Errorf("%d orders deleted, want the delivered one", n)
		}
	})
}

// During a sale, what follows the last delivery has no gap, and nothing remains when the sale is over: no entry is committed with a lower
// id than one that was read.
func TestDeliveriesDuringASaleHaveNoGap(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s, q := timed(t, open(t, url, "one", raw))
		create(t, s, "a", "conditional", 10_000)
		create(t, s, "b", "conditional", 10_000)
		scheduleDeliveries(t, s, q)
		var sale sync.WaitGroup
		for range 6 {
			other := open(t, url, "other")
			sale.Go(func() {
				for range 40 {
					_, _ = insist(t.Context(), func() (any, error) {
						return nil, other.Commit(t.Context(), &order.Batch{Claims: conditionally("a", "b"), Requests: []*order.Request{request(1, "a", "b")}})
					})
				}
			})
		}
		over := make(chan struct{})
		go func() { sale.Wait(); close(over) }()
		ids := make(map[string][]int64)
		for ended := false; ; {
			select {
			case <-over:
				ended = true
			default:
			}
			found := 0
			for _, sku := range []string{"a", "b"} {
				entries, err := insist(t.Context(), func() ([]stock.Entry, error) { return s.Undelivered(t.Context(), sku, 7) })
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					ids[sku] = append(ids[sku], e.ID)
				}
				if found += len(entries); len(entries) > 0 {
					_, err := insist(t.Context(), func() (any, error) { return nil, s.Delivered(t.Context(), sku, ids[sku][len(ids[sku])-1]) })
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if ended && found == 0 {
				break
			}
		}
		for sku, got := range ids {
			var all []int64
			if err := raw.db.Raw("SELECT id FROM ledger WHERE sku = ? ORDER BY id", sku).Scan(&all).Error; err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, all) || len(all) != 241 {
				t.Errorf("%s: %d entries delivered, the ledger has %d", sku, len(got), len(all))
			}
		}
	})
}
