package memlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	keys map[string]*rwEntry // held or waited for
	last uint64              // token of the latest fencing token of any key
}

// rwEntry is one key. Readers wait only while a writer holds the key or waits for it.
type rwEntry struct {
	fence   dlock.Fence // of the last writer, shared by the readers
	wrote   bool        // the last phase was a writer's, so that readers are next
	writer  *hold
	readers []*hold
	writing []*rwWaiter // the writers that wait, first come first
	reading []*rwWaiter // the readers of the next phase
}

type hold struct {
	id    string    // readers share the owner of a fencing token
	until time.Time // when the grant expires
}

type rwWaiter struct {
	granted chan rwGrant // buffered: the granter never waits
}

type rwGrant struct {
	*hold
	fence dlock.Fence
	sent  time.Time
}

var _ dlock.RWLocker = (*RW)(nil)

// NewRW returns an RW that holds nothing.
func NewRW(cfg Config) *RW {
	l := &RW{ttl: cmp.Or(cfg.TTL, 30*time.Second), cfg: cfg, keys: map[string]*rwEntry{}}
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
	w := &rwWaiter{granted: make(chan rwGrant, 1)}
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

// lease turns a grant into what the caller gets. It does not block, and may run under mu.
func (l *RW) lease(ctx context.Context, key string, write bool, g rwGrant) *dlock.Lease {
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: g.fence, Sent: g.sent, TTL: l.ttl, MaxHold: l.cfg.MaxHold,
		Kind: g.id, Backend: l.sides.Side(write), NoReentry: l.cfg.NoReentry, Renewer: l.renewer,
		Release: func(context.Context) error {
			return l.held(key, g.fence, g.id, func(e *rwEntry, h *hold) { l.drop(key, e, h) })
		},
	})
}

// renew is for the Renewer.
func (l *RW) renew(_ context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	for i, h := range held {
		errs[i] = l.held(h.Key, h.Fence, h.Kind, func(_ *rwEntry, g *hold) { g.until = time.Now().Add(l.ttl) })
	}
	return errs
}

// held runs f if the grant id still has key.
func (l *RW) held(key string, fence dlock.Fence, id string, f func(*rwEntry, *hold)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok {
		for h := range e.holds {
			switch {
			case h.id == id && time.Now().Before(h.until):
				f(e, h)
				return nil
			case h.id != id && h == e.writer:
				return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Taken}
			}
		}
	}
	return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
}

// poll passes key on if grants have expired, and returns when to poll again.
func (l *RW) poll(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return l.ttl
	}
	l.settle(key, e)
	return l.expiry(e)
}

// leave takes w out of its queue. A grant that came at the same moment continues to the next.
func (l *RW) leave(key string, w *rwWaiter, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return
	}
	select {
	case g := <-w.granted:
		l.drop(key, e, g.hold)
	default:
		queue := e.queue(write)
		*queue = slices.DeleteFunc(*queue, func(other *rwWaiter) bool { return other == w })
		l.settle(key, e) // readers waited for a writer that has left
	}
}
