package stock

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
)

// leased takes a lease of l on the SKU.
func leased(l dlock.Locker) Lock {
	if l == nil {
		return nil
	}
	return func(ctx context.Context, sku string) (Held, error) {
		lease, err := l.Acquire(ctx, LockKey(sku))
		if err != nil {
			return Held{}, fmt.Errorf("stock: lock %q: %w", sku, err)
		}
		work, cancel := lease.Context(ctx)
		return Held{Context: work, Fence: lease.Fence(), ValidUntil: lease.ValidUntil, Release: func() {
			cancel()
			_ = lease.Release(ctx) // its TTL frees what the store does not learn of
		}}, nil
	}
}

// Refused raises the next fence of the lock service of o above the one that the row has accepted, if err is the row's
// refusal of a fence. It changes nothing if a newer holder was faster, which is the usual reason for a stale fence.
// Otherwise a store that has lost its data, and whose clock is behind, would continue to issue fences that the row refuses.
// If it fails, the next refusal raises the fence.
func (o Offer) Refused(ctx context.Context, err error) {
	e, ok := errors.AsType[*FencedError](err)
	if r, raises := o.Strategy.service.(dlock.CounterRaiser); ok && raises && e.Refused.SKU == o.SKU {
		_ = r.RaiseCounter(ctx, LockKey(o.SKU), e.Accepted.Token-min(e.Base, e.Accepted.Token))
	}
}

// LockKey returns the key under which sku is locked.
func LockKey(sku string) string { return "sku:" + sku }
