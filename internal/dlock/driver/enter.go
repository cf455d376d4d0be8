package driver

import (
	"context"
	"errors"

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
	for _, key := range keys {
		if check == nil {
			break
		}
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
