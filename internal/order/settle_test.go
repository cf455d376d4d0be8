package order_test

import (
	"errors"
	"sync"
	"testing"

	"example.com/shop/internal/order"
)

func TestSettledOrdersStaySettled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, store := setup(t, conditional(t), order.Config{})
	place := func() string {
		o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
		if err != nil {
			t.Fatal(err)
		}
		return o.ID
	}
	paid, cancelled := place(), place()
	for range 2 { // the second time is answered as the first
		if o, err := svc.Pay(ctx, order.Target{ID: paid}, "p1"); err != nil || o.Status != order.Confirmed {
			t.Fatal(o, err)
		}
		if o, err := svc.Cancel(ctx, order.Target{ID: cancelled}); err != nil || o.Status != order.Cancelled {
			t.Fatal(o, err)
		}
	}
	conflicts := map[order.Status]error{}
	_, conflicts[order.Confirmed] = svc.Cancel(ctx, order.Target{ID: paid})
	_, conflicts[order.Cancelled] = svc.Pay(ctx, order.Target{ID: cancelled}, "p1")
	for state, err := range conflicts {
		if e, ok := errors.AsType[*order.StateError](err); !ok || e.Order.Status != state {
			t.Errorf("%s: %v", state, err)
		}
	}
	if _, err := svc.Pay(ctx, order.Target{ID: paid}, "p2"); err == nil {
		t.Error("paid twice, by two payments")
	}
	if _, err := svc.Pay(ctx, order.Target{ID: order.NewID()}, "p1"); !errors.Is(err, order.ErrNotFound) {
		t.Error(err)
	}
	exact(t, store, "a", 1)
}

// Of a payment and a cancellation that meet, exactly one happens.
func TestPayAndCancelAtOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	svc, store := setup(t, conditional(t), order.Config{})
	paid := int64(0)
	for range 10 {
		o, err := svc.Place(ctx, order.Purchase{Customer: "c1", Items: units(1, "a")})
		if err != nil {
			t.Fatal(err)
		}
		var (
			group             sync.WaitGroup
			payErr, cancelErr error
		)
		group.Go(func() { _, payErr = svc.Pay(ctx, order.Target{ID: o.ID}, "p1") })
		group.Go(func() { _, cancelErr = svc.Cancel(ctx, order.Target{ID: o.ID}) })
		group.Wait()
		if (payErr == nil) == (cancelErr == nil) {
			t.Fatalf("pay: %v; cancel: %v", payErr, cancelErr)
		}
		if payErr == nil {
			paid++
		}
	}
	exact(t, store, "a", paid)
}
