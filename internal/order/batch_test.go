package order_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/order/ordertest"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// slow is a store whose commits take as long as the test wants.
type slow struct {
	*sqlstore.Store

	begun  chan struct{} // closed when a commit has begun
	finish chan struct{}
	once   sync.Once
}

// Commit implements [order.Store].
func (s *slow) Commit(ctx context.Context, group ...*order.Batch) error {
	s.once.Do(func() { close(s.begun) })
	<-s.finish
	return s.Store.Commit(context.WithoutCancel(ctx), group...)
}

// An order gets its answer when its context ends, here with the cause of a deadline, although its batch continues for others. Its outcome
// is unknown then, and its id finds it later.
func TestDeadlineBoundsTheWaitForABatch(t *testing.T) {
	t.Parallel()
	s, l := locked(t)
	s.Cohort = true
	_, store := setup(t, s, order.Config{})
	db := &slow{Store: store, begun: make(chan struct{}), finish: make(chan struct{})}
	seen := &holders{new(ordertest.History), make(chan func(string) int, 1), make(chan time.Time, 1)}
	svc := order.NewService(db, stock.NewStrategies(stock.Lockers{}).With(s), order.Config{Publisher: seen})
	lease := hold(t, l) // so that both orders are in one batch
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	type answer struct {
		order order.Order
		err   error
	}
	place := func(ctx context.Context) <-chan answer {
		done := make(chan answer, 1)
		go func() {
			o, err := svc.Place(ctx, one("a"))
			done <- answer{o, err}
		}()
		return done
	}
	short, long := place(ctx), place(t.Context())
	var count func(string) int
	testbedtest.Eventually(t, "both wait", func() bool {
		select {
		case count = <-seen.count:
		default:
		}
		return count != nil && count("a") == 2
	})
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-db.begun
	end(context.DeadlineExceeded)
	var late answer
	select {
	case late = <-short:
	case <-time.After(30 * time.Second):
		t.Fatal("an order waits for its batch when its time is over")
	}
	if !errors.Is(late.err, order.ErrOutcomeUnknown) || late.order.ID == "" {
		t.Errorf("%+v, %v; want the id of an order whose outcome is unknown", late.order, late.err)
	}
	close(db.finish)
	if a := <-long; a.err != nil {
		t.Error(a.err)
	}
	if err := svc.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if o, err := svc.Order(t.Context(), late.order.ID, ""); err != nil || o.Status != order.Pending {
		t.Errorf("%+v, %v", o, err)
	}
	exact(t, store, "a", 2)
}

// holders is a publisher that keeps what it receives about waits and leases.
type holders struct {
	*ordertest.History

	count   chan func(sku string) int
	expires chan time.Time
}

// Waits implements [order.Publisher].
func (h *holders) Waits(_, _ string, count func(sku string) int) {
	select {
	case h.count <- count:
	default:
	}
}

// Held implements [order.Publisher].
func (h *holders) Held(_, _ string, _ uint64, _ time.Time, expires func() time.Time) (ended func()) {
	select {
	case h.expires <- expires():
	default:
	}
	return func() {}
}

// The publisher can count the orders that wait for a lease, together or each for itself, and knows when a lease expires. An order of a cohort
// that has its lease at once has not waited.
func TestOrdersThatWaitForALeaseAreCounted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redis", "redis-cohort"} {
		l := memlock.New(memlock.Config{})
		seen := &holders{new(ordertest.History), make(chan func(string) int, 1), make(chan time.Time, 1)}
		_, store := setup(t, stock.Strategy{Name: name}, order.Config{})
		svc := order.NewService(store, stock.NewStrategies(stock.Lockers{Redis: l}), order.Config{Publisher: seen})
		if _, err := svc.Place(t.Context(), one("a")); err != nil {
			t.Fatal(err)
		}
		<-seen.expires
		if n := len(seen.count); name == "redis-cohort" && n > 0 {
			t.Error("an order waits for a lease that is free")
		} else if n > 0 {
			<-seen.count
		}
		lease := hold(t, l)
		var placed sync.WaitGroup
		for range 3 {
			placed.Go(func() {
				if _, err := svc.Place(t.Context(), one("a")); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		count := <-seen.count
		testbedtest.Eventually(t, name+": three orders wait", func() bool { return count("a") == 3 })
		if n := count("b"); n != 0 {
			t.Errorf("%s: %d wait for another SKU", name, n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		placed.Wait()
		if n := count("a"); n != 0 {
			t.Errorf("%s: %d wait at the end", name, n)
		}
		if left := time.Until(<-seen.expires); left < 20*time.Second || left > 30*time.Second {
			t.Errorf("%s: a lease of 30 s expires in %v", name, left)
		}
	}
}
