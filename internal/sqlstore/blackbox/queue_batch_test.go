package blackbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// In a batch, those that are queued no longer leave the others alone.
func TestBatchOfQueuedOrders(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s, q := timed(t, open(t, url, "one"))
		for _, w := range []stock.Update{stock.Conditional, stock.RowLock} {
			sku := fmt.Sprint("a", w)
			create(t, s, sku, "conditional", 2)
			batch := []*order.Request{{}, {}, request(1, sku), {}}
			for i, life := range map[int]time.Duration{0: time.Hour, 1: 0, 3: time.Hour} {
				batch[i] = &order.Request{Order: enqueue(t, s, sku, life), TTL: time.Hour, Queued: true}
			}
			if err := s.Commit(t.Context(), &order.Batch{Claims: claim(sku, w, dlock.Fence{}), Requests: batch}); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"<nil>", "*order.StateError", "<nil>", "*stock.ShortageError"} {
				if got := fmt.Sprintf("%T", batch[i].Err); got != want {
					t.Errorf("write %d, order %d: %v, want %s", w, i, batch[i].Err, want)
				}
			}
			has(t, q, batch[0].Order.ID, order.ExpireTimer)
			has(t, q, batch[2].Order.ID, order.ExpireTimer)
			has(t, q, batch[3].Order.ID, order.PlaceTimer)
			balanced(t, s, sku, 2, 0)
		}
	})
}

// The placement of a queued order began in time and waits for the stock. If its time ends meanwhile it is placed, and
// never reads as rejected.
func TestTimeOfAQueuedOrderEndsWhileItIsPlaced(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		ctx, s := t.Context(), open(t, url, "one")
		create(t, s, "a", "conditional", 2)
		var (
			g      *gate
			o      order.Order
			r      *order.Request
			result chan error
		)
		for life, reached := time.Second, false; !reached; life *= 2 {
			if life > time.Minute {
				t.Fatal("the time was over before the placement began, time after time")
			}
			g = newGate(gate{before: "UPDATE skus SET reserved"})
			placing := open(t, url, "placing", g)
			o = enqueue(t, s, "a", life)
			r, result = &order.Request{Order: o, TTL: time.Hour, Queued: true}, make(chan error, 1)
			go func() {
				result <- placing.Commit(ctx, &order.Batch{Claims: claim("a", stock.Conditional, dlock.Fence{}), Requests: []*order.Request{r}})
			}()
			select {
			case <-g.reached:
				reached = true
			case <-result: // the machine was too slow
			}
		}
		past(o)
		reading := make(chan order.Status, 1)
		go func() { reading <- statusOf(t, s, o.ID, "order") }()
		var read order.Status
		select { // as soon as there is an answer, or when it seems to wait for the placement
		case read = <-reading:
		case <-time.After(300 * time.Millisecond):
		}
		close(g.opened)
		if err := <-result; err != nil || r.Err != nil {
			t.Errorf("%v, %v", err, r.Err)
		}
		if read == "" {
			read = <-reading
		}
		if read != order.Pending {
			t.Errorf("read as %s", read)
		}
		balanced(t, s, "a", 1, 0)
	})
}

// A queued order whose reply to COMMIT was lost is queued, and placed, once; a second placement
// is not taken for the first.
func TestLostReplyInTheQueue(t *testing.T) {
	t.Parallel()
	plain, proxy := proxied(t)
	s, q := timed(t, plain)
	create(t, s, "a", "conditional", 9)
	proxy.DropReply("COMMIT")
	o := enqueue(t, s, "a", time.Hour)
	has(t, q, o.ID, order.PlaceTimer)
	proxy.DropReply("COMMIT")
	placed, err := dequeue(t, s, o)
	if err != nil || placed.Status != order.Pending {
		t.Errorf("%+v, %v", placed, err)
	}
	has(t, q, o.ID, order.ExpireTimer)
	second := enqueue(t, s, "a", time.Hour)
	proxy.DropReply("COMMIT")
	if err := s.Reject(t.Context(), second.ID, order.OutOfStock); err != nil {
		t.Error(err)
	}
	has(t, q, second.ID)
	if stored, err := s.Order(t.Context(), o.ID, ""); err != nil || cmp.Diff(placed, stored) != "" {
		t.Errorf("%+v, %v", stored, err)
	}
	if proxy.Dropped() != 3 {
		t.Errorf("%d replies were lost, want 3", proxy.Dropped())
	}
	balanced(t, s, "a", 1, 0)
	if events, err := s.Events(t.Context(), o.ID, "c1"); err != nil || len(events) != 1 {
		t.Errorf("%+v, %v", events, err)
	}
}
