package stock

import (
	"context"
	"errors"

	"example.com/shop/internal/dlock"
)

// leased holds a lease of l on the SKU, and releases it after fn: after the
// commit.
func leased(l dlock.Locker) Lock {
	if l == nil {
		return nil
	}
	return func(ctx context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
		return refused(ctx, l, sku, dlock.Do(ctx, l, LockKey(sku), fn))
	}
}

// Refused raises the next fence of l's lock service if err is the refusal of a fence by the row of l. It returns err, and why it could not.
func (l Offer) Refused(ctx context.Context, err error) error {
	return refused(ctx, l.Strategy.service, l.SKU, err)
}

func refused(ctx context.Context, l dlock.Locker, sku string, err error) error {
	if e, ok := errors.AsType[*FencedError](err); ok && e.Refused.SKU == sku {
		err = errors.Join(err, reseed(ctx, l, e))
	}
	return err
}

// reseed raises the next fence of l above the one that the row has accepted. It changes nothing if a newer holder was
// faster, which is the usual reason for a stale fence. Otherwise a store that has lost its data, and whose clock is
// behind, would continue to issue fences that the row refuses.
func reseed(ctx context.Context, l dlock.Locker, e *FencedError) error {
	r, ok := l.(dlock.CounterRaiser)
	if !ok {
		return nil
	}
	if err := r.RaiseCounter(ctx, LockKey(e.Refused.SKU), e.Accepted.Token-min(e.Base, e.Accepted.Token)); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// LockKey returns the key under which sku is locked.
func LockKey(sku string) string { return "sku:" + sku }
