package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

// ErrGuarded says that somebody else held the guard of a SKU for as long as the
// caller was willing to wait for it. The operation had no effect. It matches [ErrBusy].
var ErrGuarded = fmt.Errorf("stock: somebody else holds the guard: %w", ErrBusy)

type patienceKey struct{}

// WithPatience returns a context under which [Hold] waits no longer than d from now, for
// all guards together, and makes one attempt at each when that is over. It is a deadline for
// guards alone, and travels as deadlines do: what is done under the guards still has the
// time of ctx.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, time.Now().Add(d))
}

// WithoutPatience returns a context under which guards are waited for until ctx ends: on behalf of
// several customers, of whom no one's patience counts.
func WithoutPatience(ctx context.Context) context.Context {
	return context.WithValue(ctx, patienceKey{}, nil)
}

// Waiting returns a child of ctx that ends with the patience of ctx, if it has any limit, with
// [ErrGuarded] as its cause.
func Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	d, bounded := patience(ctx)
	if !bounded {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, ErrGuarded)
}

// patience returns how long to wait for a guard; without a limit, bounded is false.
func patience(ctx context.Context) (d time.Duration, bounded bool) {
	until, bounded := ctx.Value(patienceKey{}).(time.Time)
	return time.Until(until), bounded
}

// patient is a Locker whose callers wait as long as their patience lasts.
type patient struct{ dlock.Locker }

// Acquire implements [dlock.Locker].
func (p patient) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	wait, cancel := Waiting(ctx)
	defer cancel()
	if wait.Err() != nil && ctx.Err() == nil {
		lease, err := p.TryAcquire(ctx, key)
		if errors.Is(err, dlock.ErrHeld) {
			err = fmt.Errorf("%w: %w", ErrGuarded, err)
		}
		return lease, err
	}
	lease, err := p.Locker.Acquire(wait, key)
	if err != nil && ctx.Err() == nil && wait.Err() != nil && !errors.Is(err, ErrGuarded) {
		err = fmt.Errorf("%w: %w", ErrGuarded, err)
	}
	return lease, err
}
