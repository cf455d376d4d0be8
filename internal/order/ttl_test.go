package order_test

import (
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/order"
)

// Orders that are placed after a change wait for as long as that says; others stay as they are.
func TestSetTTL(t *testing.T) {
	t.Parallel()
	svc, _ := setup(t, conditional(t), order.Config{TTL: time.Hour})
	place := func() order.Order {
		t.Helper()
		o, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: []order.Item{{SKU: "a", Quantity: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	before := place()
	svc.SetTTL(time.Minute)
	after := place()
	if d := after.ExpiresAt.Sub(after.CreatedAt); d != time.Minute {
		t.Errorf("after the change an order waits for %v", d)
	}
	if o, err := svc.Order(t.Context(), before.ID, ""); err != nil || o.ExpiresAt.Sub(o.CreatedAt) != time.Hour {
		t.Errorf("the one before waits for %v, %v", o.ExpiresAt.Sub(o.CreatedAt), err)
	}
	// So does how long it may wait with all extensions.
	if _, err := svc.Extend(t.Context(), order.Target{ID: after.ID}, 3*time.Minute+1); !errors.Is(err, order.ErrInvalid) {
		t.Errorf("more than four times a minute: %v, want ErrInvalid", err)
	}
	svc.SetTTL(2 * time.Hour)
	if _, err := svc.Extend(t.Context(), order.Target{ID: before.ID}, 7*time.Hour); err != nil {
		t.Errorf("eight hours, four times as long as orders wait now: %v", err)
	}
}
