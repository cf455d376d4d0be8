package share

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.EachLocker    = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
	_ dlock.CounterRaiser = (*Locker)(nil)
)

// TryAcquire implements [dlock.Locker]. Its grant has one turn.
func (s *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, s, nil, key); lease != nil || err != nil {
		return lease, err
	}
	lease, err := s.next.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.alone(ctx, lease), nil
}

// alone returns a lease over one whose keys nobody else gets a turn of.
func (s *Locker) alone(ctx context.Context, lease *dlock.Lease) *dlock.Lease {
	first := scaled(lease.Held())
	g := dlock.Grant{Key: first.Key, Fence: first.Fence, Kind: first.Kind, Backend: s, Release: lease.Release}
	for _, key := range lease.Keys()[1:] {
		g.Rest = append(g.Rest, scaled(dlock.Held{Key: key, Fence: lease.FenceOf(key)}))
	}
	return dlock.Over(ctx, g, lease)
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (s *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, s, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, s.Acquire)
}

// TryAcquireEach implements [dlock.EachLocker], in one round trip if the store can. Its grants have one turn.
func (s *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, s, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	next, ok := s.next.(dlock.EachLocker)
	if !ok {
		return nil, s.unsupported("TryAcquireEach")
	}
	lease, err := next.TryAcquireEach(ctx, keys)
	if lease == nil {
		return nil, err
	}
	return s.alone(ctx, lease), err
}

// Inspect implements [dlock.Inspector]. The fence is that of the first turn under the present grant.
func (s *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	next, ok := s.next.(dlock.Inspector)
	if !ok {
		return dlock.State{}, s.unsupported("Inspect")
	}
	state, err := next.Inspect(ctx, key)
	if err != nil {
		return dlock.State{}, err
	}
	state.Fence.Token *= Turns
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[key]; q != nil {
		state.Waiters += len(q.waiters) // without a place in the store
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser].
func (s *Locker) ForceRelease(ctx context.Context, key string) error {
	next, ok := s.next.(dlock.ForceReleaser)
	if !ok {
		return s.unsupported("ForceRelease")
	}
	defer s.shut(key)
	return next.ForceRelease(ctx, key)
}

// RaiseCounter implements [dlock.CounterRaiser].
func (s *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	next, ok := s.next.(dlock.CounterRaiser)
	if !ok {
		return s.unsupported("RaiseCounter")
	}
	defer s.shut(key)
	return next.RaiseCounter(ctx, key, atLeast/Turns)
}

// shut ends the sharing of the grant of key, and of one that may be on its way. It is called after a request that may
// have done its work although it failed: another process may have the key, or the tokens may be too low.
func (s *Locker) shut(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	if q == nil {
		return
	}
	q.shut = q.asking
	if q.grant != nil {
		s.drop(q, q.grant)
	}
}

func (s *Locker) unsupported(call string) error {
	return fmt.Errorf("share: %s by %T: %w", call, s.next, errors.ErrUnsupported)
}
