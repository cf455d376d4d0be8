package dlock

import (
	"context"
	"slices"
)

// chain lists the holds of the user of a context from Lease.Context.
type chain struct {
	hold  *Hold
	outer *chain
}

type chainKey struct{}

// carry adds the hold to the chain of ctx.
func (h *Hold) carry(ctx context.Context) context.Context {
	if h.g.Backend == nil {
		return ctx
	}
	outer, _ := ctx.Value(chainKey{}).(*chain)
	return context.WithValue(ctx, chainKey{}, &chain{h, outer})
}

// Reenter is the first call of a backend in Acquire and TryAcquire. If ctx comes from [Lease.Context] of a lease of
// backend that holds keys, Reenter returns another lease of the same grant. That lease has the same fencing token,
// and needs no request to the store. Leases are counted, so that only the release of the last one reaches the store.
//
// It returns nil and nil if ctx has no such lease: then the caller is a new owner and must wait. It returns the
// [*LostError] if the lease was lost. It returns [ErrReentry] if one lease of ctx holds only some of keys, because the
// caller could wait for itself. The context defines the holder, not the goroutine.
func Reenter(ctx context.Context, backend any, keys ...string) (*Lease, error) {
	c, _ := ctx.Value(chainKey{}).(*chain)
	for ; c != nil; c = c.outer {
		if c.hold.g.Backend != backend {
			continue
		}
		held := c.hold.find(keys)
		if len(held) == 0 {
			continue
		}
		if lease, err := c.hold.enter(ctx, held, keys); lease != nil || err != nil {
			return lease, err
		}
	}
	return nil, nil
}

// find returns the keys that h holds.
func (h *Hold) find(keys []string) []Held {
	return slices.DeleteFunc(h.g.Held(), func(held Held) bool { return !slices.Contains(keys, held.Key) })
}

// enter adds a lease for held, if these are all of keys. It returns nil and nil if h was released.
func (h *Hold) enter(ctx context.Context, held []Held, keys []string) (*Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if lost, ok := h.over.(*LostError); ok { //nolint:errorlint // It is never wrapped.
		return nil, lost
	}
	switch {
	case h.over != nil:
		return nil, nil
	case slices.ContainsFunc(keys, func(key string) bool {
		return !slices.ContainsFunc(held, func(h Held) bool { return h.Key == key })
	}):
		return nil, ErrReentry
	}
	return h.open(context.WithoutCancel(ctx), held), nil
}
