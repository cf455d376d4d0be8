package stock_test

import (
	"context"
	"errors"
	"testing"

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
	held, err := local.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	cancel(hungUp)
	if _, err := local.Lock(gone, "a"); !errors.Is(err, hungUp) {
		t.Errorf("waiting ended with %v", err)
	}
	if _, err := local.Lock(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	held.Release()
	if _, err := local.Lock(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
