package driver

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// Poll repeats try until it returns anything but [dlock.ErrHeld], or ctx ends. It is
// how a backend without a queue waits. When ctx ends the error matches both
// ctx.Err() and the cause.
func Poll(ctx context.Context, b backoff.Decorrelated, try func(context.Context) (*dlock.Lease, error)) (*dlock.Lease, error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for prev := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil, dlock.Ended(ctx)
		case <-pause.C:
		}
		if ctx.Err() != nil { // both were ready
			return nil, dlock.Ended(ctx)
		}
		lease, err := try(ctx)
		if !errors.Is(err, dlock.ErrHeld) {
			return lease, err
		}
		prev = b.Next(prev)
		pause.Reset(prev)
	}
}
