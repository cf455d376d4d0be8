package memlock

import (
	"context"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Locker is a lock service in memory: an [RW] without readers. Its clients share one Locker. It grants a key in the order
// in which Acquire was called for it.
type Locker struct{ rw *RW }

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.EachLocker    = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker that holds nothing.
func New(cfg Config) *Locker { return &Locker{NewRW(cfg)} }

// Acquire implements [dlock.Locker].
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.rw.Acquire(ctx, key)
}

// TryAcquire implements [dlock.Locker].
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.rw.TryAcquire(ctx, key)
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l.rw.sides.Side(true), nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// TryAcquireEach implements [dlock.EachLocker].
func (l *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l.rw.sides.Side(true), nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.EachByItself(ctx, keys, l.TryAcquire)
}

// Expire ends the grant of key at once, as if its TTL had passed. It is for tests.
func (l *Locker) Expire(key string) { l.rw.Expire(key) }
