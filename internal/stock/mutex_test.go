package stock_test

import (
	"context"
	"errors"
	"testing"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// The mutex of "local" keeps one order at a time, and waiting for it ends with
// the context.
func TestLocalMutex(t *testing.T) {
	local, err := stock.NewStrategies(stock.Lockers{}).Lookup("local")
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	hungUp := errors.New("the client hung up")
	err = local.Lock(t.Context(), "a", func(ctx context.Context, _ dlock.Fence) error {
		cancel(hungUp)
		err := local.Lock(gone, "a", func(context.Context, dlock.Fence) error {
			t.Error("two hold the mutex")
			return nil
		})
		if !errors.Is(err, hungUp) {
			t.Errorf("waiting ended with %v", err)
		}
		return local.Lock(ctx, "b", func(context.Context, dlock.Fence) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}
