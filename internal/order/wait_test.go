package order_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/stock/waitlist"
)

// waiting returns a service whose customers can wait for units, which setup's stores have
// ten of.
func waiting(t *testing.T, cohort bool, c order.Config) (*order.Service, *waitlist.Waitlist, func(sku string, want int64)) {
	t.Helper()
	l := memlock.New(memlock.Config{})
	list, err := waitlist.New(waitlist.Config{Lock: l, Cond: memlock.NewCond(l)})
	if err != nil {
		t.Fatal(err)
	}
	c.Waitlist = list
	s := conditional(t)
	s.Cohort = cohort
	svc, store := setup(t, s, c)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := list.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return svc, list, func(sku string, want int64) { t.Helper(); exact(t, store, sku, want) }
}

// One customer has a few places to wait. An order beyond these is refused at once as sold out, which is true.
func TestOneCustomerDoesNotFillTheLine(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		svc, list, _ := waiting(t, cohort, order.Config{})
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")}); err != nil {
			t.Fatal(err)
		}
		ctx, hurry := context.WithCancel(t.Context())
		greedy := one("a")
		greedy.Prefer = order.Preference{Bounded: true, Wait: soon}
		const crowd = 40
		outcomes := make(chan error, crowd)
		for range crowd {
			go func() {
				_, err := svc.Place(ctx, greedy)
				outcomes <- err
			}()
		}
		refused := 0
		for ; refused < crowd-20; refused++ { // the others wait
			if err := <-outcomes; !isShort(err) || !errors.Is(err, order.ErrNotWaiting) || errors.Is(err, stock.ErrBusy) {
				t.Fatalf("refused with %v, want the shortage", err)
			}
		}
		if n := list.Waiting(); n != 20 {
			t.Errorf("%d of %d wait", n, crowd)
		}
		other := one("b")
		other.Customer = "c9"
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "b")}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		other.Prefer = order.Preference{Bounded: true, Wait: 50 * time.Millisecond}
		if _, err := svc.Place(t.Context(), other); !isShort(err) || errors.Is(err, order.ErrNotWaiting) || time.Since(began) < 50*time.Millisecond {
			t.Errorf("another customer, for another SKU, after %v: %v", time.Since(began), err)
		}
		hurry()
		for ; refused < crowd; refused++ {
			<-outcomes
		}
	})
}

// Waiting customers get the units that others release, each unit once. Customers whose maximum wait has passed get
// none.
func TestWaitForUnits(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		svc, _, exactly := waiting(t, cohort, order.Config{})
		all, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")})
		if err != nil {
			t.Fatal(err)
		}
		patient := one("a")
		patient.Prefer = order.Preference{Bounded: true, Wait: 20 * time.Millisecond}
		if _, err := svc.Place(t.Context(), patient); !isShort(err) {
			t.Errorf("nothing came back, and yet: %v", err)
		}
		patient.Prefer.Wait = soon
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
	})
}

// A customer who waits for a basket is notified of whatever it lacks, one SKU after the other.
func TestWaitForABasket(t *testing.T) {
	t.Parallel()
	svc, _, exactly := waiting(t, false, order.Config{})
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
			Customer: "c1", Items: units(2, "a", "b"), Prefer: order.Preference{Bounded: true, Wait: soon},
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
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		stopping, stop := context.WithCancel(t.Context())
		svc, _, exactly := waiting(t, cohort, order.Config{Stopping: stopping})
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")}); err != nil {
			t.Fatal(err)
		}
		patient := one("a")
		patient.Prefer = order.Preference{Bounded: true, Wait: soon}
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
	})
}

// Without a permit nothing is tried, and who waits for units keeps none.
func TestPermits(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		limiter, err := permits.New(nil, permits.Config{Permits: 1})
		if err != nil {
			t.Fatal(err)
		}
		svc, list, exactly := waiting(t, cohort, order.Config{Permits: limiter})
		release, err := limiter.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Place(t.Context(), one("a")); !errors.Is(err, order.ErrConcurrencyLimit) {
			t.Error(err)
		}
		exactly("a", 0)
		release()
		all, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")})
		if err != nil {
			t.Fatal(err)
		}
		patient := one("a")
		patient.Prefer = order.Preference{Bounded: true, Wait: soon}
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
			t.Errorf("alongside a waiter: %v", err)
		}
		if _, err := svc.Cancel(t.Context(), order.Target{ID: all.ID}); err != nil {
			t.Fatal(err)
		}
		if err := <-placed; err != nil {
			t.Error(err)
		}
		exactly("a", 1)
		exactly("b", 1)
	})
}

// A waiter that found no permit at its last try gets that error, not sold out.
func TestWaitThatEndsAtTheConcurrencyLimit(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		for wait := 2 * time.Second; !endsAtTheLimit(t, cohort, wait); wait *= 2 {
			if wait > soon {
				t.Fatal("the units never came back in time")
			}
		}
	})
}

// endsAtTheLimit has a customer wait for units that are released while there is no permit. judged is false if the
// machine was so slow that the customer had gone by then.
func endsAtTheLimit(t *testing.T, cohort bool, wait time.Duration) (judged bool) {
	t.Helper()
	limiter, err := permits.New(nil, permits.Config{Permits: 1})
	if err != nil {
		t.Fatal(err)
	}
	svc, list, exactly := waiting(t, cohort, order.Config{Permits: limiter})
	all, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")})
	if err != nil {
		t.Fatal(err)
	}
	patient := one("a")
	patient.Prefer = order.Preference{Bounded: true, Wait: wait}
	began, placed := time.Now(), make(chan error, 1)
	go func() {
		_, err := svc.Place(t.Context(), patient)
		placed <- err
	}()
	for list.Waiting() == 0 {
		if time.Since(began) > wait {
			<-placed
			return false
		}
		<-time.After(time.Millisecond)
	}
	release, err := limiter.Take(t.Context())
	if err != nil {
		<-placed // it was at its last try
		return false
	}
	defer release()
	if _, err := svc.Cancel(t.Context(), order.Target{ID: all.ID}); err != nil {
		t.Fatal(err)
	}
	inTime := time.Since(began) < wait
	if err := <-placed; inTime && !errors.Is(err, order.ErrConcurrencyLimit) {
		t.Errorf("ten units are there and no permit: %v", err)
	}
	exactly("a", 0)
	return inTime
}
