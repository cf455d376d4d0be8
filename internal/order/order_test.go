package order_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func TestPlaceMergesAndSortsLines(t *testing.T) {
	t.Parallel()
	svc, store := setup(t, conditional(t), order.Config{TTL: time.Hour})
	o, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(3, "b", "a", "b")})
	if err != nil {
		t.Fatal(err)
	}
	want := []order.Item{{SKU: "a", Quantity: 3}, {SKU: "b", Quantity: 6}}
	if diff := cmp.Diff(want, o.Items); diff != "" {
		t.Error(diff)
	}
	if d := o.ExpiresAt.Sub(o.CreatedAt); d != time.Hour || o.Status != order.Pending {
		t.Errorf("%s for %v", o.Status, d)
	}
	// Each line alone would fit; their sum does not.
	if _, err := svc.Place(t.Context(), order.Purchase{Customer: "c1", Items: units(3, "b", "b")}); !isShort(err) {
		t.Errorf("six of four: %v", err)
	}
	exact(t, store, "b", 6)
}

func TestBadOrdersChangeNothing(t *testing.T) {
	t.Parallel()
	svc, store := setup(t, conditional(t), order.Config{})
	many := make([]order.Item, order.MaxItems+1)
	for i := range many {
		many[i] = order.Item{SKU: "a", Quantity: 1}
	}
	for name, c := range map[string]struct {
		customer string
		items    []order.Item
		want     error
	}{
		"no customer":                     {"", units(1, "a"), order.ErrInvalid},
		"bad customer":                    {"a b", units(1, "a"), order.ErrInvalid},
		"long customer":                   {strings.Repeat("x", 65), units(1, "a"), order.ErrInvalid},
		"no items":                        {"c1", nil, order.ErrInvalid},
		"too many items":                  {"c1", many, order.ErrInvalid},
		"zero":                            {"c1", units(0, "a"), order.ErrInvalid},
		"negative":                        {"c1", units(-1, "a"), order.ErrInvalid},
		"negative item alongside another": {"c1", []order.Item{{SKU: "a", Quantity: 5}, {SKU: "a", Quantity: -4}}, order.ErrInvalid},
		"too many units":                  {"c1", units(stock.MaxQuantity+1, "a"), order.ErrInvalid},
		"too many units in all":           {"c1", units(stock.MaxQuantity, "a", "a"), order.ErrInvalid},
		"bad SKU":                         {"c1", units(1, "a b"), order.ErrInvalid},
		"unknown SKU":                     {"c1", units(1, "a", "zzz"), order.ErrUnknownSKU},
	} {
		if _, err := svc.Place(t.Context(), order.Purchase{Customer: c.customer, Items: c.items}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	exact(t, store, "a", 0)
}

func TestValidID(t *testing.T) {
	t.Parallel()
	id := order.NewID()
	for s, want := range map[string]bool{
		id: true, "": false, strings.ToUpper(id): false, "{" + id + "}": false, "urn:uuid:" + id: false,
		strings.ReplaceAll(id, "-", ""): false, id + " ": false,
	} {
		if got := order.ValidID(s); got != want {
			t.Errorf("ValidID(%q) = %v", s, got)
		}
	}
}

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
