package memlock

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// RW is a read/write lock in memory, phase-fair; writers go first come, first
// served. Its clients share one RW.
type RW struct {
	ttl     time.Duration
	cfg     Config
	sides   driver.RWSides
	renewer *driver.Renewer

	mu   sync.Mutex
	keys map[string]*entry // held or waited for
	last uint64            // token of the latest fencing token of any key
}

// entry is one key. Readers wait only while a writer holds the key or waits for it.
type entry struct {
	fence   dlock.Fence // of the last writer, shared by the readers; none if it expired
	wrote   bool        // the last phase was a writer's, so that readers are next
	writer  *hold
	readers []*hold
	writing []*waiter // the writers that wait, first come first
	reading []*waiter // the readers of the next phase
}

type hold struct {
	id    string // readers share the owner of a fencing token
	since time.Time
	until time.Time // when the grant expires
}

// grant is what a waiter gets.
type grant struct {
	*hold
	fence dlock.Fence
	sent  time.Time
}

var _ dlock.RWLocker = (*RW)(nil)

// NewRW returns an RW that holds nothing.
func NewRW(cfg Config) *RW {
	l := &RW{ttl: cmp.Or(cfg.TTL, 30*time.Second), cfg: cfg, keys: map[string]*entry{}}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: l.ttl, Renew: l.renew})
	return l
}

// Acquire implements [dlock.Locker] for a writer.
func (l *RW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, true)
}

// AcquireRead implements [dlock.RWLocker].
func (l *RW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.acquire(ctx, key, false)
}

// TryAcquire implements [dlock.Locker] for a writer.
func (l *RW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, true)
}

// TryAcquireRead implements [dlock.RWLocker].
func (l *RW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.tryAcquire(ctx, key, false)
}

// Expire ends every grant of key at once, as if its TTL had passed. It is for tests.
func (l *RW) Expire(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok {
		for h := range e.holds {
			h.until = time.Now()
		}
	}
}

func (l *RW) tryAcquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.sides.Enter(ctx, key, write, nil); lease != nil || err != nil {
		return lease, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(key)
	if !e.free(write) {
		return nil, fmt.Errorf("memlock: %q: %w", key, dlock.ErrHeld)
	}
	return l.lease(ctx, key, write, l.grant(e, write)), nil
}

func (l *RW) acquire(ctx context.Context, key string, write bool) (*dlock.Lease, error) {
	if lease, err := l.sides.Enter(ctx, key, write, nil); lease != nil || err != nil {
		return lease, err
	}
	l.mu.Lock()
	e := l.entry(key)
	if e.free(write) {
		defer l.mu.Unlock()
		return l.lease(ctx, key, write, l.grant(e, write)), nil
	}
	w := &waiter{granted: make(chan grant, 1)}
	queue := e.queue(write)
	*queue = append(*queue, w)
	expire := time.NewTimer(l.expiry(e))
	l.mu.Unlock()
	defer expire.Stop()
	for {
		select {
		case g := <-w.granted:
			return l.lease(ctx, key, write, g), nil
		case <-expire.C:
			expire.Reset(l.poll(key))
		case <-ctx.Done():
			l.leave(key, w, write)
			return nil, dlock.Ended(ctx)
		}
	}
}
