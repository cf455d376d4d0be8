package driver

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock"
)

// CheckPermits returns an [dlock.ErrInvalidPermits] that names both numbers unless 1 <=
// n <= permits.
func CheckPermits(key string, n, permits int) error {
	if n < 1 || n > permits {
		return fmt.Errorf("%q: %d of %d: %w", key, n, permits, dlock.ErrInvalidPermits)
	}
	return nil
}

// EnterPermits is [Enter] for a semaphore, which is not reentrant. It also refuses a number of permits that no key has.
func EnterPermits(ctx context.Context, check func(key string) error, key string, n, permits int) error {
	if err := mayAcquire(ctx, check, key); err != nil {
		return err
	}
	return CheckPermits(key, n, permits)
}
