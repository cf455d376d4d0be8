package stock

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// Guard holds whatever protects sku while fn runs. It blocks until it holds it,
// ctx ends, or the patience of ctx does ([WithPatience], [ErrGuarded]). It passes fn
// a context that ends with the guard, and the fence of its lease if it has one.
type Guard func(ctx context.Context, sku string, fn func(ctx context.Context, f dlock.Fence) error) error

// unguarded protects nothing.
func unguarded(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
	return fn(ctx, dlock.Fence{})
}

// leased holds a lease of l on the SKU, and releases it after fn: after the commit, or, by a cohort, once
// nothing but the COMMIT is left (cohort.HandOver).
func leased(l dlock.Locker) Guard {
	if l == nil {
		return nil
	}
	return func(ctx context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
		err := dlock.Do(ctx, patient{l}, LockKey(sku), fn)
		if e, ok := errors.AsType[*FencedError](err); ok && e.Refused.SKU == sku {
			err = errors.Join(err, reseed(ctx, l, e))
		}
		return err
	}
}

// reseed lifts the next fence of l above the one that the row has accepted. It
// changes nothing when a newer holder was faster, the usual reason for a stale
// fence; but a store that has lost its data, and whose clock is behind that of
// the one before, would go on issuing fences that the row refuses.
func reseed(ctx context.Context, l dlock.Locker, e *FencedError) error {
	r, ok := l.(dlock.Reseeder)
	if !ok {
		return nil
	}
	if err := r.Reseed(ctx, LockKey(e.Refused.SKU), e.Accepted.Token-min(e.Base, e.Accepted.Token)); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// LockKey returns the key under which sku is locked.
func LockKey(sku string) string { return "sku:" + sku }

// mutexes is one mutex per SKU in this process. A mutex is a channel with room
// for one token, so that waiting for it ends with the context.
type mutexes struct {
	mu    sync.Mutex
	bySKU map[string]chan struct{} // guarded by mu; one entry for each SKU sold by "local"
}

func newMutexes() *mutexes { return &mutexes{bySKU: make(map[string]chan struct{})} }

func (m *mutexes) of(sku string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.bySKU[sku]
	if !ok {
		c = make(chan struct{}, 1)
		m.bySKU[sku] = c
	}
	return c
}

func (m *mutexes) hold(ctx context.Context, sku string, fn func(context.Context, dlock.Fence) error) error {
	c := m.of(sku)
	if err := take(ctx, c); err != nil {
		return err
	}
	defer func() { <-c }()
	return fn(ctx, dlock.Fence{})
}

// take puts a token into c.
func take(ctx context.Context, c chan<- struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	default:
	}
	var over <-chan time.Time
	if d, bounded := patience(ctx); bounded {
		over = time.After(d)
	}
	select {
	case c <- struct{}{}:
		return nil
	case <-over:
		return ErrGuarded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
