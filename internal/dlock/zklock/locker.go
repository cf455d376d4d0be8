package zklock

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/zookeeper"
)

// Locker locks keys in ZooKeeper.
type Locker struct {
	queue *queue
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker on s, which it does not close. The end of s ends all leases: when s is
// closed they are lost before their nodes are gone.
func New(s *zookeeper.Session, cfg Config) (*Locker, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Locker{queue: newQueue(s, cfg)}, nil
}

// Acquire implements [dlock.Locker]. It waits in the queue of key. When no server
// has answered for the timeout of the session, it returns an error instead of
// waiting on.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, driver.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	return l.queue.acquire(ctx, claim{key: key, dir: l.dir(key), backend: l})
}

// TryAcquire implements [dlock.Locker]. It does not overtake a queue.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, driver.CheckKey, key); lease != nil || err != nil {
		return lease, err
	}
	return l.queue.try(ctx, claim{key: key, dir: l.dir(key), backend: l})
}

// explain makes an error of the session one of dlock.
func explain(what, key string, err error) error {
	if errors.Is(err, zookeeper.ErrUncertain) {
		err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	return fmt.Errorf("zklock: %s %q: %w", what, key, err)
}
