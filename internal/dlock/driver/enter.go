package driver

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
)

// Enter is the first call of a backend in every acquisition. If the user of ctx holds keys, it returns another lease of
// that grant; see [dlock.Reenter]. A new owner gets nil, and an error if ctx has ended or check refuses a key. A nil check
// refuses none.
func Enter(ctx context.Context, backend any, check func(key string) error, keys ...string) (*dlock.Lease, error) {
	if lease, err := dlock.Reenter(ctx, backend, keys...); lease != nil || err != nil {
		return lease, err
	}
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	if check == nil {
		return nil, nil
	}
	for _, key := range keys {
		if err := check(key); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// CheckKey refuses the empty key.
func CheckKey(key string) error {
	if key == "" {
		return errors.New("driver: the key is empty")
	}
	return nil
}

// CheckPermits returns [dlock.ErrInvalidPermits] with both numbers unless 1 <= n <= permits.
func CheckPermits(key string, n, permits int) error {
	if n < 1 || n > permits {
		return fmt.Errorf("%q: %d of %d: %w", key, n, permits, dlock.ErrInvalidPermits)
	}
	return nil
}
