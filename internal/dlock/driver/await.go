package driver

import (
	"context"

	"example.com/shop/internal/dlock"
)

// Await returns when wait has returned, which has to end, or with the error of ctx when that ends first.
func Await(ctx context.Context, wait func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return dlock.Ended(ctx)
	}
}
