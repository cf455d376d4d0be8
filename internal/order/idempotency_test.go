package order_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// Of equal requests at two instances, the one that waits for units gives the answer of the
// other as soon as that is stored.
func TestTwinOfAWaiter(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		svc, list, exactly := waiting(t, cohort, order.Config{})
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")}); err != nil {
			t.Fatal(err)
		}
		once := &idempotency.Request{
			Scope: idempotency.Scope{Customer: "c1", Route: "POST /orders", Key: "k1"},
		}
		patient := one("a")
		patient.Key = once
		patient.Prefer = order.Preference{Bounded: true, Wait: soon}
		began, placed := time.Now(), make(chan error, 1)
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
		hasty := one("a")
		hasty.Key = once
		if _, err := svc.Place(t.Context(), hasty); !isShort(err) {
			t.Errorf("the twin that does not wait: %v", err)
		}
		if err := svc.Refuse(t.Context(), once, idempotency.Answer{Status: 409, Body: []byte("no")}); err != nil {
			t.Error(err)
		}
		err := <-placed
		if a, ok := errors.AsType[*idempotency.AnsweredError](err); !ok || string(a.Answer.Body) != "no" || time.Since(began) > soon-time.Second {
			t.Errorf("the one that waits, after %v: %v", time.Since(began), err)
		}
		exactly("a", 10)
	})
}

// The retry of an accepted order has its answer at once, even if the SKU has sold out and others are in the queue.
func TestARetryDoesNotQueue(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, cohort bool) {
		t.Helper()
		svc, list, exactly := waiting(t, cohort, order.Config{})
		first := order.Purchase{Customer: "c1", Items: units(10, "a"), Prefer: order.Preference{Bounded: true, Wait: soon}}
		first.Key = &idempotency.Request{
			Scope: idempotency.Scope{Customer: "c1", Route: "POST /orders", Key: "k3"},
		}
		o, err := svc.Place(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		ctx, hurry := context.WithCancel(t.Context())
		defer hurry()
		gone := make(chan error, 1)
		go func() {
			other := one("a")
			other.Prefer = order.Preference{Bounded: true, Wait: time.Hour}
			_, err := svc.Place(ctx, other)
			gone <- err
		}()
		for end := time.Now().Add(soon); list.Waiting() == 0; {
			if time.Now().After(end) {
				t.Fatal("nobody waits")
			}
			<-time.After(time.Millisecond)
		}
		began := time.Now()
		_, err = svc.Place(t.Context(), first)
		if a, ok := errors.AsType[*idempotency.AnsweredError](err); !ok || !strings.Contains(string(a.Answer.Body), o.ID) || time.Since(began) > soon-time.Second {
			t.Errorf("the repetition, after %v: %v", time.Since(began), err)
		}
		reused := *first.Key
		reused.Hash[0] = 1
		first.Key, began = &reused, time.Now()
		if _, err := svc.Place(t.Context(), first); !errors.Is(err, idempotency.ErrReused) || time.Since(began) > soon-time.Second {
			t.Errorf("the key with another payload, after %v: %v", time.Since(began), err)
		}
		hurry()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		exactly("a", 10)
	})
}

// Spans say of an order that was asked for twice neither time that it failed.
func TestARepetitionIsNoFailure(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	svc, _ := setup(t, conditional(t), order.Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	purchase := one("a")
	purchase.Key = &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: "POST /orders", Key: "k4"},
	}
	if _, err := svc.Place(t.Context(), purchase); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Place(t.Context(), purchase); !errors.As(err, new(*idempotency.AnsweredError)) {
		t.Fatal(err)
	}
	for _, s := range spans.GetSpans() {
		if s.Status.Code == codes.Error {
			t.Errorf("%s: %s", s.Name, s.Status.Description)
		}
	}
	if n := len(spans.GetSpans()); n < 4 {
		t.Errorf("%d spans of two orders", n)
	}
}

// A payment of a paid order changes and stores nothing. Its key stays unused, and the response is the state of the
// order, whatever the payload.
func TestARepeatedPaymentStoresNothing(t *testing.T) {
	t.Parallel()
	svc, _ := setup(t, conditional(t), order.Config{})
	o, err := svc.Place(t.Context(), one("a"))
	if err != nil {
		t.Fatal(err)
	}
	once := &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: "POST pay", Key: "k2"},
	}
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID}, "p1"); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID, Key: once}, "p1"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := svc.Answer(t.Context(), once); found || err != nil {
		t.Errorf("the answer is stored: %v, %v", found, err)
	}
	other := *once
	other.Hash[0] = 1
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID, Key: &other}, "p2"); !errors.As(err, new(*order.StateError)) {
		t.Errorf("another payment with the same key: %v", err)
	}
}
