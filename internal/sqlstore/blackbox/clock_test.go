package blackbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// changes is what a customer may do with an order that waits for payment.
var changes = map[string]func(context.Context, *sqlstore.Store, order.Target) (changed bool, err error){
	"pay": func(ctx context.Context, s *sqlstore.Store, t order.Target) (bool, error) {
		_, changed, err := s.Settle(ctx, t, order.Confirmed, "p1")
		return changed, err
	},
	"cancel": func(ctx context.Context, s *sqlstore.Store, t order.Target) (bool, error) {
		_, changed, err := s.Settle(ctx, t, order.Cancelled, "")
		return changed, err
	},
	"extend": func(ctx context.Context, s *sqlstore.Store, t order.Target) (bool, error) {
		_, changed, err := s.Extend(ctx, t, time.Hour, 4*time.Hour)
		return changed, err
	},
}

// past waits until o has expired by the clock of this machine, which is that of the database.
func past(o order.Order) { <-time.After(time.Until(o.ExpiresAt) + 50*time.Millisecond) }

// An order that reads as expired stays so. If a transaction has changed it in time and has not committed, a reader
// waits for that transaction.
func TestExpiredIsFinalOnceRead(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		s := open(t, url, "one")
		create(t, s, "a", "conditional", 1000)
		for name, change := range changes {
			for _, read := range []string{"order", "list"} {
				t.Run(name+"/"+read, func(t *testing.T) {
					for ttl := 500 * time.Millisecond; !readConcurrently(t, s, url, ttl, read, change); ttl *= 2 {
						if ttl > time.Minute {
							t.Fatal("the change never began in time")
						}
					}
				})
			}
		}
	})
}

// readConcurrently reads an order that has expired while a change of it, which was in time, is under way. It
// returns false, and nothing is judged, if the machine was so slow that the change was not.
func readConcurrently(
	t *testing.T, s *sqlstore.Store, url string, ttl time.Duration, read string,
	change func(context.Context, *sqlstore.Store, order.Target) (bool, error),
) bool {
	t.Helper()
	o := place(t, s, ttl, "a")
	g := newGate(gate{before: "INTO idempotency_keys"})
	other := open(t, url, "other", g)
	once := &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: "change", Key: o.ID},
	}
	done := make(chan bool, 1)
	go func() {
		changed, err := change(t.Context(), other, order.Target{ID: o.ID, Key: once})
		if err != nil {
			t.Error(err)
		}
		done <- changed
	}()
	select {
	case <-g.reached:
	case <-done:
		return false
	}
	past(o)
	readings := make(chan order.Status, 1)
	go func() { readings <- statusOf(t, s, o.ID, read) }()
	var first order.Status
	select { // as soon as there is an answer, or when it seems to wait for the change
	case first = <-readings:
	case <-time.After(300 * time.Millisecond):
	}
	close(g.opened)
	changed := <-done
	if first == "" {
		first = <-readings
	}
	if last := statusOf(t, s, o.ID, read); changed && (first != last || last == order.Expired) {
		t.Errorf("read as %s, and then as %s", first, last)
	}
	return changed
}

// statusOf returns how an order reads.
func statusOf(t *testing.T, s *sqlstore.Store, id, read string) order.Status {
	if read == "order" {
		o, err := insist(t.Context(), func() (order.Order, error) { return s.Order(t.Context(), id, "") })
		if err != nil {
			t.Error(err)
		}
		return o.Status
	}
	p, err := insist(t.Context(), func() (order.Page, error) { return s.Orders(t.Context(), order.Filter{Limit: 10}) })
	if err != nil {
		t.Error(err)
	}
	for _, o := range p.Orders {
		if o.ID == id {
			return o.Status
		}
	}
	t.Errorf("%s is not in the list", id)
	return ""
}

// A change that begins in time and waits for the order's row is judged when it has the row.
func TestChangeThatWaitsBeyondTheEndIsTooLate(t *testing.T) {
	t.Parallel()
	url, raw := testbedtest.Database(t), new(handle)
	s := open(t, url, "one", raw)
	create(t, s, "a", "conditional", 1000)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			o := place(t, s, time.Second, "a")
			release := lockRow(t, raw.db, "SELECT * FROM orders WHERE id = ?", o.ID)
			done, g := make(chan bool, 1), newGate(gate{second: "FOR UPDATE NOWAIT"})
			other := open(t, url, "other", g)
			go func() {
				changed, err := insist(t.Context(), func() (bool, error) { return change(t.Context(), other, order.Target{ID: o.ID}) })
				if err != nil {
					t.Error(err)
				}
				done <- changed
			}()
			wait(t, "the second attempt", g.reached) // so the first one found the row locked
			close(g.opened)
			past(o)
			release()
			if changed := <-done; changed {
				t.Error("an order was changed after it had expired")
			}
			if got := statusOf(t, s, o.ID, "order"); got != order.Expired {
				t.Errorf("reads as %s", got)
			}
		})
	}
}

// A limit is judged at one moment: an order that expires while the next one is being placed counts, or it
// cannot be paid.
func TestLimitIsJudgedAtOneMoment(t *testing.T) {
	t.Parallel()
	url, raw := testbedtest.Database(t), new(handle)
	s := open(t, url, "one", raw)
	for n, ttl := 0, time.Second; ; n, ttl = n+1, 2*ttl {
		if ttl > time.Minute {
			t.Fatal("no order was counted before it expired")
		}
		sku := fmt.Sprint("a", n)
		limited(t, s, sku, "conditional", 10, 1)
		o := place(t, s, ttl, sku)
		g := newGate(gate{before: "expires_at <= ?"})
		other, next, placed := open(t, url, "other", g), request(1, sku), make(chan error, 1)
		go func() {
			placed <- other.Commit(t.Context(), &order.Batch{Claims: claim(sku, stock.Conditional, dlock.Fence{}), Requests: []*order.Request{next}})
		}()
		wait(t, "the count", g.reached)
		inTime := time.Now().Before(o.ExpiresAt)
		paid := make(chan error, 1)
		go func() { paid <- settle(t.Context(), s, o.ID, order.Confirmed, "p1") }()
		past(o)
		close(g.opened)
		for _, c := range []chan error{placed, paid} {
			if err := <-c; err != nil && !strings.Contains(err.Error(), "expired") {
				t.Fatal(err)
			}
		}
		if a := auditOf(t, s, sku); a.Accepted() > 1 && next.Err == nil && statusOf(t, s, o.ID, "order") == order.Confirmed {
			t.Errorf("%d units were sold to a customer who may have 1", a.Accepted())
		}
		if inTime {
			return
		}
	}
}

// A refusal has the numbers by which it was decided. Units that are released between the update that found too few and
// the read of the level are sold.
func TestRefusalHasTheNumbersThatItWasDecidedBy(t *testing.T) {
	t.Parallel()
	url := testbedtest.Database(t)
	s := open(t, url, "one")
	for _, other := range []bool{false, true} {
		skus := []string{fmt.Sprint("a-", other)}
		create(t, s, skus[0], "conditional", 1)
		if other {
			skus = append(skus, "b")
			create(t, s, "b", "conditional", 0)
		}
		first := place(t, s, time.Hour, skus[0])
		g := newGate(gate{before: "SELECT * FROM skus WHERE sku = ?"})
		second, r, done := open(t, url, "two", g), request(1, skus...), make(chan error, 1)
		go func() {
			done <- second.Commit(t.Context(), &order.Batch{Claims: conditionally(skus...), Requests: []*order.Request{r}})
		}()
		wait(t, "the look at the level", g.reached)
		if err := settle(t.Context(), s, first.ID, order.Cancelled, ""); err != nil {
			t.Fatal(err)
		}
		close(g.opened)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		short, refused := errors.AsType[*stock.ShortageError](r.Err)
		switch {
		case !other && r.Err != nil:
			t.Errorf("refused: %v", r.Err)
		case other && (!refused || cmp.Diff([]stock.Shortage{{SKU: "b", Requested: 1}}, short.Shortages) != ""):
			t.Errorf("%v, want a shortage of b", r.Err)
		}
	}
}
