package order_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const (
	soon   = time.Minute           // a deadline for what should take milliseconds
	moment = 50 * time.Millisecond // that an order waits which is to wait for nothing: for its own instance
)

// locked returns the strategy redis on a lock service in memory, and that.
func locked(t *testing.T) (stock.Strategy, dlock.Locker) {
	t.Helper()
	l := memlock.New(memlock.Config{})
	s, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// hold keeps the lock of the SKU a from everybody else.
func hold(t *testing.T, l dlock.Locker) *dlock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), stock.LockKey("a"))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func one(sku string) order.Purchase {
	return order.Purchase{Customer: "c1", Items: units(1, sku)}
}

// A lock that somebody else holds is waited for as long as the customer says, and not
// longer.
func TestPatienceForAGuard(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		s, l := locked(t)
		s.Cohort = cohort
		svc, store := setup(t, s, order.Config{})
		lease := hold(t, l)
		for _, p := range []order.Preference{{Bounded: true}, {Bounded: true, Wait: 20 * time.Millisecond}} {
			purchase := one("a")
			purchase.Prefer = p
			began := time.Now()
			if _, err := svc.Place(t.Context(), purchase); !errors.Is(err, stock.ErrLockHeld) || !errors.Is(err, stock.ErrBusy) {
				t.Errorf("maximum wait %v: %v", p.Wait, err)
			}
			if took := time.Since(began); took < p.Wait {
				t.Errorf("gave up after %v of %v", took, p.Wait)
			}
		}
		exact(t, store, "a", 0)
		time.AfterFunc(20*time.Millisecond, func() {
			if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		purchase := one("a")
		purchase.Prefer = order.Preference{Bounded: true, Wait: soon}
		if _, err := svc.Place(t.Context(), purchase); err != nil {
			t.Error(err)
		}
		purchase.Prefer = order.Preference{Bounded: true} // the lock is free, or about to be
		began := time.Now()
		_, err := svc.Place(t.Context(), purchase)
		if errors.Is(err, stock.ErrLockHeld) && time.Since(began) >= moment { // on a slow machine that is not enough
			if err := svc.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			_, err = svc.Place(t.Context(), purchase)
		}
		if err != nil {
			t.Error(err)
		}
		exact(t, store, "a", 2)
	})
}

// A queued order holds nothing. It becomes pending when a later try finds the lock free, and its time to be paid begins
// then.
func TestQueuedOrderIsPlacedLater(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		s, l := locked(t)
		s.Cohort = cohort
		svc, store := setup(t, s, order.Config{TTL: time.Hour})
		lease := hold(t, l)
		purchase := one("a")
		purchase.Prefer.Async = true
		o, err := svc.Place(t.Context(), purchase)
		if err != nil || o.Status != order.Queued {
			t.Fatalf("%+v, %v", o, err)
		}
		exact(t, store, "a", 0)
		if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID}, "p1"); !isState(err, order.Queued) {
			t.Errorf("paid before it was placed: %v", err)
		}
		batch := fired(o.ID)
		batch[0].Due = o.CreatedAt.Add(-time.Minute) // it has been tried for a while
		got, err := svc.PlaceQueued(t.Context(), batch)
		if err != nil || got[0] != timeout.Again(100*time.Millisecond) {
			t.Fatalf("a try while the lock is held: %+v, %v", got, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []timeout.Outcome{timeout.Committed(), timeout.Done()} { // a timer may fire again
			if got := placeQueued(t, svc, batch); got[0] != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
			exact(t, store, "a", 1)
		}
		placed, err := svc.Order(t.Context(), o.ID, "")
		if err != nil || placed.Status != order.Pending || placed.ExpiresAt.Sub(o.CreatedAt) < time.Hour {
			t.Errorf("%+v, %v", placed, err)
		}
	})
}

// placeQueued fires the timers of a batch until each is settled. On a slow machine the lock may be free too late for
// one try.
func placeQueued(t *testing.T, svc *order.Service, batch []timeout.Fired) []timeout.Outcome {
	t.Helper()
	got, err := svc.PlaceQueued(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(soon)
	for i := range got {
		for got[i] != timeout.Committed() && got[i] != timeout.Done() && time.Now().Before(end) {
			again, err := svc.PlaceQueued(t.Context(), batch[i:i+1])
			if err != nil {
				t.Fatal(err)
			}
			got[i] = again[0]
		}
	}
	return got
}

func isState(err error, want order.Status) bool {
	e, ok := errors.AsType[*order.StateError](err)
	return ok && e.Order.Status == want
}

// A queued order ends as REJECTED if the SKU is sold out or its time is over, and as CANCELLED if the customer cancels
// it.
func TestQueuedOrderEnds(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		s, l := locked(t)
		s.Cohort = cohort
		svc, store := setup(t, s, order.Config{QueueLife: time.Hour})
		hasty := order.NewService(store, stock.NewStrategies(stock.Lockers{}).With(s), order.Config{QueueLife: time.Microsecond})
		enqueue := func(svc *order.Service, n int64) string {
			lease := hold(t, l)
			defer lease.Release(t.Context())
			o, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(n, "a"), Prefer: order.Preference{Async: true}})
			if err != nil || o.Status != order.Queued {
				t.Fatalf("%+v, %v", o, err)
			}
			return o.ID
		}
		tooMany, tooLate, unwanted := enqueue(svc, 11), enqueue(hasty, 1), enqueue(svc, 1)
		if o, err := svc.Cancel(t.Context(), order.Target{ID: unwanted}); err != nil || o.Status != order.Cancelled {
			t.Fatalf("%+v, %v", o, err)
		}
		batch := fired(tooMany, tooLate, unwanted, order.NewID())
		got := placeQueued(t, svc, batch)
		for i, want := range []timeout.Outcome{timeout.Committed(), timeout.Committed(), timeout.Done(), timeout.Done()} {
			if got[i] != want {
				t.Errorf("timer %d: %+v, want %+v", i, got[i], want)
			}
		}
		for id, want := range map[string]order.Order{
			tooMany:  {Status: order.Rejected, Reason: order.OutOfStock},
			tooLate:  {Status: order.Rejected, Reason: order.NotInTime},
			unwanted: {Status: order.Cancelled},
		} {
			if o, err := svc.Order(t.Context(), id, ""); err != nil || o.Status != want.Status || o.Reason != want.Reason {
				t.Errorf("%+v, %v, want %s %s", o, err, want.Status, want.Reason)
			}
		}
		exact(t, store, "a", 0)
	})
}

// panicking is a store that breaks down over one order.
type panicking struct {
	order.Store
	id string
}

func (p panicking) Order(ctx context.Context, id, owner string) (order.Order, error) {
	if id == p.id {
		panic("poison")
	}
	return p.Store.Order(ctx, id, owner)
}

// A queued order that makes its try panic is tried again alone, and takes nobody along.
func TestPoisonInTheQueue(t *testing.T) {
	t.Parallel()
	_, store := setup(t, conditional(t), order.Config{})
	poison := order.NewID()
	svc := order.NewService(panicking{store, poison}, stock.NewStrategies(stock.Lockers{}), order.Config{})
	got, err := svc.PlaceQueued(t.Context(), fired(order.NewID(), poison, order.NewID()))
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != timeout.Done() || got[2] != timeout.Done() || got[1] == timeout.Done() || got[1] == timeout.Committed() {
		t.Errorf("%+v", got)
	}
}

// When units are short, an order reads the level and is refused without the lease. It does not use a remembered level:
// a release of units needs no lease, and the next order gets these units.
func TestSoldOutIsSeenWithoutTheLease(t *testing.T) {
	t.Parallel()
	s, l := locked(t)
	s.Cohort = true
	svc, store := setup(t, s, order.Config{})
	all, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(10, "a")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Place(t.Context(), one("a")); !isShort(err) { // by a batch, which was short
		t.Fatal(err)
	}
	if err := svc.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := hold(t, l)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		if _, err := svc.Place(ctx, one("a")); !isShort(err) {
			t.Fatal(err)
		}
		cancel()
	}
	if _, err := svc.Cancel(t.Context(), order.Target{ID: all.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restock(t.Context(), "a", 1, nil); err != nil {
		t.Fatal(err)
	}
	placed := make(chan error, 1)
	go func() {
		_, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(11, "a")})
		placed <- err
	}()
	for { // until it waits for the lease
		if state, err := l.(dlock.Inspector).Inspect(t.Context(), stock.LockKey("a")); err != nil || state.Waiters > 0 {
			break
		}
		select {
		case err := <-placed:
			t.Fatalf("refused by what was known before: %v", err)
		default:
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-placed; err != nil {
		t.Error(err)
	}
	exact(t, store, "a", 11)
}
