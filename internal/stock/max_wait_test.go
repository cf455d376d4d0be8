package stock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock"
)

// Patience is for all guards of a basket together, and whoever has none left still takes what
// is free.
func TestPatienceIsForAllGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New(memlock.Config{})
		strategy, err := stock.NewStrategies(stock.Lockers{Redis: l}).Lookup("redis")
		if err != nil {
			t.Fatal(err)
		}
		held := make(map[string]*dlock.Lease)
		for _, sku := range []string{"a", "b"} {
			if held[sku], err = l.Acquire(t.Context(), stock.LockKey(sku)); err != nil {
				t.Fatal(err)
			}
		}
		release := func(sku string, after time.Duration) {
			time.AfterFunc(after, func() {
				if err := held[sku].Release(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		}
		release("a", 700*time.Millisecond)
		release("b", 1500*time.Millisecond)
		lines := []stock.Line{{SKU: "a", Strategy: strategy}, {SKU: "b", Strategy: strategy}}
		hold := func() error {
			return stock.Hold(stock.WithPatience(t.Context(), time.Second), lines, func(context.Context, []stock.Claim) error { return nil })
		}
		began := time.Now()
		if err := hold(); !errors.Is(err, stock.ErrGuarded) || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(time.Second)
		spent := stock.WithPatience(t.Context(), 0)
		if err := stock.Hold(spent, lines, func(context.Context, []stock.Claim) error { return nil }); err != nil {
			t.Errorf("free guards, and no patience: %v", err)
		}
	})
}
