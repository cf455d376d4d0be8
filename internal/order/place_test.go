package order_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/permits"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/waitlist"
)

const soon = 30 * time.Second // a deadline for what should take milliseconds

// locked returns the strategy redis on a lock service in memory, and that.
func locked(t *testing.T) (stock.Strategy, dlock.Locker) {
	t.Helper()
	l := memlock.New(memlock.Config{})
	s, err := stock.NewStrategies(l).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

// hold keeps the guard of a SKU from everybody else.
func hold(t *testing.T, l dlock.Locker, sku string) *dlock.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), stock.LockKey(sku))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func one(sku string) order.Purchase {
	return order.Purchase{Customer: "c1", Items: units(1, sku)}
}

// A guard that somebody else holds is waited for as long as the customer says, and not
// longer.
func TestPatienceForAGuard(t *testing.T) {
	s, l := locked(t)
	svc, store := setup(t, s, order.Config{})
	lease := hold(t, l, "a")
	for _, p := range []order.Patience{{Bounded: true}, {Bounded: true, Wait: 20 * time.Millisecond}} {
		purchase := one("a")
		purchase.Patience = p
		began := time.Now()
		if _, err := svc.Place(t.Context(), purchase); !errors.Is(err, stock.ErrGuarded) || !errors.Is(err, stock.ErrBusy) {
			t.Errorf("patience %v: %v", p.Wait, err)
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
	purchase.Patience = order.Patience{Bounded: true, Wait: soon}
	if _, err := svc.Place(t.Context(), purchase); err != nil {
		t.Error(err)
	}
	purchase.Patience = order.Patience{Bounded: true} // the guard is free
	if _, err := svc.Place(t.Context(), purchase); err != nil {
		t.Error(err)
	}
	exact(t, store, "a", 2)
}

// An order that was put into the queue holds nothing, and becomes pending when a later
// try finds the guard free; its time to be paid begins then.
func TestQueuedOrderIsPlacedLater(t *testing.T) {
	s, l := locked(t)
	svc, store := setup(t, s, order.Config{TTL: time.Hour})
	lease := hold(t, l, "a")
	purchase := one("a")
	purchase.Patience.Async = true
	o, err := svc.Place(t.Context(), purchase)
	if err != nil || o.Status != order.Queued {
		t.Fatalf("%+v, %v", o, err)
	}
	exact(t, store, "a", 0)
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID}, "p1"); !isState(err, order.Queued) {
		t.Errorf("paid before it was placed: %v", err)
	}
	batch := fired(o.ID)
	batch[0].Due = o.CreatedAt
	got, err := svc.PlaceQueued(t.Context(), batch)
	if err != nil || got[0] == timeout.Committed() || got[0] == timeout.Done() {
		t.Fatalf("a try while the guard is held: %+v, %v", got, err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []timeout.Outcome{timeout.Committed(), timeout.Done()} { // a timer may fire again
		if got, err = svc.PlaceQueued(t.Context(), batch); err != nil || got[0] != want {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
		exact(t, store, "a", 1)
	}
	placed, err := svc.Order(t.Context(), o.ID, "")
	if err != nil || placed.Status != order.Pending || placed.ExpiresAt.Sub(o.CreatedAt) < time.Hour {
		t.Errorf("%+v, %v", placed, err)
	}
}

func isState(err error, want order.Status) bool {
	e, ok := errors.AsType[*order.StateError](err)
	return ok && e.Order.Status == want
}

// A queued order ends as REJECTED when there is nothing to be had, or when its time is over,
// and as CANCELLED when the customer thinks better of it.
func TestQueuedOrderEnds(t *testing.T) {
	s, l := locked(t)
	svc, store := setup(t, s, order.Config{QueueLife: time.Hour})
	hasty := order.NewService(store, stock.NewStrategies(nil).With(s), order.Config{QueueLife: time.Microsecond})
	enqueue := func(svc *order.Service, n int64) string {
		lease := hold(t, l, "a")
		defer lease.Release(t.Context())
		o, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(n, "a"), Patience: order.Patience{Async: true}})
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
	got, err := svc.PlaceQueued(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
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
}

// waiting returns a service whose customers can wait for units, which setup's stores have
// ten of.
func waiting(t *testing.T, c order.Config) (*order.Service, *waitlist.Waitlist, func(sku string, want int64)) {
	t.Helper()
	l := memlock.New(memlock.Config{})
	var err error
	if c.Waitlist, err = waitlist.New(waitlist.Config{Lock: l, Cond: memlock.NewCond(l)}); err != nil {
		t.Fatal(err)
	}
	svc, store := setup(t, conditional(t), c)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Waitlist.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return svc, c.Waitlist, func(sku string, want int64) { t.Helper(); exact(t, store, sku, want) }
}

// Customers who wait get the units that others give back, each unit once, and those whose
// patience ends get none.
func TestWaitForUnits(t *testing.T) {
	svc, _, exactly := waiting(t, order.Config{})
	all, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")})
	if err != nil {
		t.Fatal(err)
	}
	patient := one("a")
	patient.Patience = order.Patience{Bounded: true, Wait: 20 * time.Millisecond}
	if _, err := svc.Place(t.Context(), patient); !isShort(err) {
		t.Errorf("nothing came back, and yet: %v", err)
	}
	patient.Patience.Wait = soon
	const customers = 15
	outcomes := make(chan error, customers)
	ctx, hurry := context.WithCancel(t.Context())
	defer hurry()
	for range customers {
		go func() {
			_, err := svc.Place(ctx, patient)
			outcomes <- err
		}()
	}
	if _, err := svc.Cancel(t.Context(), order.Target{ID: all.ID}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	exactly("a", 10)
	hurry() // the others hang up
	for range customers - 10 {
		if err := <-outcomes; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	exactly("a", 10)
}

// One who waits for a basket is told of whatever it lacks, one SKU after the other.
func TestWaitForABasket(t *testing.T) {
	svc, _, exactly := waiting(t, order.Config{})
	var held []order.Order
	for _, sku := range []string{"a", "b"} {
		o, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, sku)})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, o)
	}
	placed := make(chan error, 1)
	go func() {
		_, err := svc.Place(t.Context(), order.Purchase{
			Customer: "c1", Items: units(2, "a", "b"), Patience: order.Patience{Bounded: true, Wait: soon},
		})
		placed <- err
	}()
	for _, o := range held {
		if _, err := svc.Cancel(t.Context(), order.Target{ID: o.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-placed; err != nil {
		t.Error(err)
	}
	exactly("a", 2)
	exactly("b", 2)
}

// Waiting ends when the service is about to stop.
func TestWaitEndsWithTheService(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	svc, _, exactly := waiting(t, order.Config{Stopping: stopping})
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")}); err != nil {
		t.Fatal(err)
	}
	patient := one("a")
	patient.Patience = order.Patience{Bounded: true, Wait: soon}
	placed := make(chan error, 1)
	go func() {
		_, err := svc.Place(t.Context(), patient)
		placed <- err
	}()
	stop()
	if err := <-placed; !errors.Is(err, order.ErrStopping) {
		t.Error(err)
	}
	exactly("a", 10)
}

// Without a permit nothing is tried, and who waits for units keeps none.
func TestPermits(t *testing.T) {
	limiter, err := permits.New(nil, permits.Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	svc, list, exactly := waiting(t, order.Config{Permits: limiter})
	release, err := limiter.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Place(t.Context(), one("a")); !errors.Is(err, order.ErrSaturated) {
		t.Error(err)
	}
	exactly("a", 0)
	release()
	all, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")})
	if err != nil {
		t.Fatal(err)
	}
	patient := one("a")
	patient.Patience = order.Patience{Bounded: true, Wait: soon}
	placed := make(chan error, 1)
	go func() {
		_, err := svc.Place(t.Context(), patient)
		placed <- err
	}()
	for end := time.Now().Add(soon); list.Waiting() == 0; {
		if time.Now().After(end) {
			t.Fatal("nobody waits")
		}
		<-time.After(time.Millisecond)
	}
	if _, err = svc.Place(t.Context(), one("b")); err != nil {
		t.Errorf("beside one who waits: %v", err)
	}
	if _, err := svc.Cancel(t.Context(), order.Target{ID: all.ID}); err != nil {
		t.Fatal(err)
	}
	if err := <-placed; err != nil {
		t.Error(err)
	}
	exactly("a", 1)
	exactly("b", 1)
}
