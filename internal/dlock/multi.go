package dlock

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// InOrder takes keys with acquire and returns one lease for all of them. It takes each key once, in the order of
// their bytes. It implements [MultiLocker.AcquireAll] for backends that cannot take several keys at once. All callers
// take keys in the same order, so there is no deadlock. Keys that are already held are kept alive meanwhile, and a
// loss ends the wait. After an error nothing is held.
func InOrder(ctx context.Context, keys []string, acquire func(ctx context.Context, key string) (*Lease, error)) (*Lease, error) {
	keys, err := Distinct(keys)
	if err != nil {
		return nil, err
	}
	var leases []*Lease
	wait := ctx
	for _, key := range keys {
		lease, err := acquire(wait, key)
		if err != nil {
			_ = releaseAll(ctx, leases) // the TTL frees what the store does not learn of
			return nil, err
		}
		leases = append(leases, lease)
		held, cancel := lease.Context(wait)
		defer cancel()
		wait = held //nolint:fatcontext // One for each key, and each ends the wait.
	}
	return Join(ctx, leases), nil
}

// Distinct returns each of keys once, in the order of their bytes. It returns an error if there is none.
func Distinct(keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, errors.New("dlock: no keys")
	}
	return slices.Compact(slices.Sorted(slices.Values(keys))), nil
}

// Join returns a lease that ends when one of leases does, and releases them all.
// If one is lost, Join releases the others at once, because nothing else would stop
// their renewals.
func Join(ctx context.Context, leases []*Lease) *Lease {
	if len(leases) == 1 {
		return leases[0]
	}
	g := leases[0].hold.g
	all := Grant{
		Key: g.Key, Fence: g.Fence, Kind: g.Kind, Backend: g.Backend,
		Release: func(ctx context.Context) error { return releaseAll(ctx, leases) },
		Abandon: func() {
			// The goroutine ends with the releases, which are bounded. Nothing waits for it.
			go func() { _ = releaseAll(context.WithoutCancel(ctx), leases) }()
		},
	}
	for _, l := range leases[1:] {
		all.Rest = append(all.Rest, l.held...)
	}
	return Over(ctx, all, leases...)
}

// Over returns a lease of g, a grant that rests on leases: it is lost as soon as one of them is. They keep it alive, so g
// has no TTL and no Renewer. Over is for decorators of a [Locker].
func Over(ctx context.Context, g Grant, leases ...*Lease) *Lease {
	h := &Hold{g: g, values: context.WithoutCancel(ctx)}
	over := h.open(h.values, g.Held())
	for _, l := range leases {
		l.await(&l.joined, func(outcome error) {
			if errors.Is(outcome, ErrLost) {
				h.Lose(outcome)
			}
		})
	}
	return over
}

// releaseAll releases leases concurrently, so that a client can send it as one.
func releaseAll(ctx context.Context, leases []*Lease) error {
	errs := make([]error, len(leases))
	var releases sync.WaitGroup
	for i, l := range leases {
		releases.Go(func() { errs[i] = l.Release(ctx) })
	}
	releases.Wait()
	return errors.Join(errs...)
}
