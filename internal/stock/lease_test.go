package stock_test

import (
	"context"
	"fmt"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// reseeder is a locker that notes from where its fences shall count.
type reseeder struct {
	dlock.Locker
	least uint64
}

func (r *reseeder) RaiseCounter(_ context.Context, _ string, atLeast uint64) error {
	r.least = atLeast
	return nil
}

// A row that has accepted more than the lock service knows raises the fences of the service, as
// the service counts them.
func TestRefusalRaisesTheFences(t *testing.T) {
	l := &reseeder{Locker: memlock.New(memlock.Config{})}
	st, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
	if err != nil {
		t.Fatal(err)
	}
	refusal := &stock.FencedError{Refused: stock.Claim{SKU: "a"}, Accepted: dlock.Fence{Token: 150}, Base: 100}
	for sku, want := range map[string]uint64{"b": 0, "a": 50} {
		l.least = 0
		if (stock.Offer{SKU: sku, Strategy: st}).Refused(t.Context(), fmt.Errorf("refused: %w", refusal)); l.least != want {
			t.Errorf("%s: raised to %d, want %d", sku, l.least, want)
		}
	}
}
