package etcdlock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Locker locks keys in etcd. Close it to end what it does in the background.
//
// etcd sorts a queue in O(n) for n waiters. A poll that finds no change is O(1). A hand-off takes the deletion with its
// commit, half a round trip for the notification, and a poll in the memory of one member. A waiter that knows that only
// the holder was ahead needs no poll. All watches of a Locker share one stream.
//
// A key that is held for more than 100 ms is watched. Its holder is notified at once if the key is deleted or the lease
// revoked. A watch from the start would cost a third of the throughput of short holds.
type Locker struct{ s *store }

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker on cli, which it does not close.
func New(cli *clientv3.Client, cfg Config) (*Locker, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("etcdlock: %w", err)
	}
	return &Locker{s: newStore(cli, cfg)}, nil
}

// Acquire implements [dlock.Locker]. It waits in the queue of key. Its place is lost if no renewal reaches etcd for a
// TTL, or if the lease of the place is revoked. Then it returns [dlock.ErrUncertain] together with [dlock.ErrLost].
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, driver.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	return named(key)(l.s.acquire(ctx, key, l))
}

// TryAcquire implements [dlock.Locker]. It does not overtake a queue.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, driver.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	return named(key)(l.s.tryAcquire(ctx, key, l))
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, driver.CheckKey, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// Close ends all leases as lost, with the reason [dlock.Closed], and ends the watches. It revokes the leases of etcd,
// also the idle ones. It waits until these leases and every uncertain acquisition have been released, or a TTL has
// passed. If ctx ends first, Close returns the error of ctx, and the rest expires by its TTL. Later acquisitions are
// lost at once.
func (l *Locker) Close(ctx context.Context) error { return l.s.close(ctx) }

// named adds key to an error.
func named(key string) func(*dlock.Lease, error) (*dlock.Lease, error) {
	return func(lease *dlock.Lease, err error) (*dlock.Lease, error) {
		if err != nil {
			return nil, fmt.Errorf("etcdlock: %q: %w", key, err)
		}
		return lease, nil
	}
}
