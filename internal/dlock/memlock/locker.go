package memlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Locker is a lock service in memory, and its client. Its users share one Locker. It grants a key in the order in which Acquire was
// called for it.
type Locker struct {
	ttl     time.Duration
	cfg     Config
	renewer *driver.Renewer

	mu   sync.Mutex
	keys map[string]*entry // held or waited for
	last uint64            // latest fencing token of any key
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.EachLocker    = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker that holds nothing.
func New(cfg Config) *Locker {
	l := &Locker{ttl: cmp.Or(cfg.TTL, 30*time.Second), cfg: cfg, keys: map[string]*entry{}}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: l.ttl, Renew: l.renew})
	return l
}

// TryAcquire implements [dlock.Locker].
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, key); lease != nil || err != nil {
		return lease, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	if e.holder != nil { // or somebody waits
		return nil, fmt.Errorf("memlock: %q: %w", key, dlock.ErrHeld)
	}
	return l.lease(ctx, key, l.grant(e)), nil
}

// Acquire implements [dlock.Locker].
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, key); lease != nil || err != nil {
		return lease, err
	}
	l.mu.Lock()
	e := l.entry(key)
	if e.holder == nil {
		defer l.mu.Unlock()
		return l.lease(ctx, key, l.grant(e)), nil
	}
	w := &waiter{granted: make(chan *hold, 1)}
	e.queue = append(e.queue, w)
	expire := time.NewTimer(time.Until(e.holder.until))
	l.mu.Unlock()
	defer expire.Stop()
	for {
		select {
		case h := <-w.granted:
			return l.lease(ctx, key, h), nil
		case <-expire.C:
			expire.Reset(l.poll(key))
		case <-ctx.Done():
			l.leave(key, w)
			return nil, dlock.Ended(ctx)
		}
	}
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// TryAcquireEach implements [dlock.EachLocker].
func (l *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	keys, err := dlock.Distinct(keys)
	var leases []*dlock.Lease
	var errs []error
	for _, key := range keys {
		switch lease, err := l.TryAcquire(ctx, key); {
		case err == nil:
			leases = append(leases, lease)
		case !errors.Is(err, dlock.ErrHeld):
			errs = append(errs, err)
		}
	}
	if err = errors.Join(append(errs, err)...); len(leases) == 0 {
		return nil, err
	}
	return dlock.Join(ctx, leases), err
}

// Expire ends the grant of key, as if its TTL had passed. Waiters notice when it would have ended, or at the next call for key. It is for
// tests.
func (l *Locker) Expire(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok && e.holder != nil {
		e.holder.until = time.Now()
	}
}
