package driver

import (
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
