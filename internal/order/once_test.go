package order_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
)

// Of equal requests at two instances, the one that waits for units gives the answer of the
// other as soon as that is stored.
func TestTwinOfAWaiter(t *testing.T) {
	svc, list, exactly := waiting(t, order.Config{})
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c0", Items: units(10, "a")}); err != nil {
		t.Fatal(err)
	}
	once := &idempotency.Request{
		Scope: idempotency.Scope{Customer: "c1", Route: "POST /orders", Key: "k1"},
		Render: func(any, error) (idempotency.Answer, bool) {
			return idempotency.Answer{Status: 409, Body: []byte("no")}, true
		},
	}
	patient := one("a")
	patient.Once = once
	patient.Patience = order.Patience{Bounded: true, Wait: soon}
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
	hasty.Once = once
	if _, err := svc.Place(t.Context(), hasty); !isShort(err) {
		t.Errorf("the twin that does not wait: %v", err)
	}
	err := <-placed
	if a, ok := errors.AsType[*idempotency.AnsweredError](err); !ok || string(a.Answer.Body) != "no" || time.Since(began) > soon-time.Second {
		t.Errorf("the one that waits, after %v: %v", time.Since(began), err)
	}
	exactly("a", 10)
}

// A payment that was made before changes nothing, and is an answer all the same: its key
// means that payment from then on.
func TestKeyOfARepeatedPayment(t *testing.T) {
	svc, _ := setup(t, conditional(t), order.Config{})
	o, err := svc.Place(t.Context(), one("a"))
	if err != nil {
		t.Fatal(err)
	}
	once := &idempotency.Request{
		Scope:  idempotency.Scope{Customer: "c1", Route: "POST pay", Key: "k2"},
		Render: func(_ any, err error) (idempotency.Answer, bool) { return idempotency.Answer{Status: 200}, err == nil },
	}
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID}, "p1"); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Pay(t.Context(), order.Target{ID: o.ID, Once: once}, "p1"); err != nil {
		t.Fatal(err)
	}
	other := *once
	other.Hash[0] = 1
	if _, _, err := svc.Answer(t.Context(), &other); !errors.Is(err, idempotency.ErrReused) {
		t.Errorf("the key is free for another payload: %v", err)
	}
}
