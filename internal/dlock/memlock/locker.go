package memlock

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// Locker is a lock service in memory. Its clients share one Locker. It grants
// a key in the order in which Acquire was called for it.
type Locker struct {
	ttl     time.Duration
	cfg     Config
	renewer *driver.Renewer

	mu   sync.Mutex
	keys map[string]*entry // held or waited for
	last uint64            // token of the latest fencing token of any key
}

type entry struct {
	fence dlock.Fence
	since time.Time
	until time.Time // when the grant expires
	queue []*waiter
}

type grant struct {
	fence dlock.Fence
	sent  time.Time
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
)

// New returns a Locker that holds nothing.
func New(cfg Config) *Locker {
	cfg.TTL = cmp.Or(cfg.TTL, 30*time.Second)
	l := &Locker{ttl: cfg.TTL, cfg: cfg, keys: map[string]*entry{}}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
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
	if l.taken(e) {
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
	if !l.taken(e) {
		defer l.mu.Unlock()
		return l.lease(ctx, key, l.grant(e)), nil
	}
	w := &waiter{granted: make(chan grant, 1)}
	e.queue = append(e.queue, w)
	expire := time.NewTimer(time.Until(e.until))
	l.mu.Unlock()
	defer expire.Stop()
	for {
		select {
		case g := <-w.granted:
			return l.lease(ctx, key, g), nil
		case <-expire.C:
			expire.Reset(l.poll(key))
		case <-ctx.Done():
			l.leave(key, w)
			return nil, dlock.Ended(ctx)
		}
	}
}

// Expire ends the grant of key at once, as if its TTL had passed. It is for tests.
func (l *Locker) Expire(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.keys[key]; ok {
		e.until = time.Now()
	}
}

// The functions below are called with mu held.

func (l *Locker) entry(key string) *entry {
	e, ok := l.keys[key]
	if !ok {
		e = &entry{}
		l.keys[key] = e
	}
	return e
}

// taken reports whether a new caller has to wait: for the holder, or behind a queue.
func (l *Locker) taken(e *entry) bool {
	return len(e.queue) > 0 || time.Now().Before(e.until)
}

// grant gives e to a new owner. The token follows the clock, as that of other
// backends does: a resource remembers fencing tokens for longer than this process lives.
func (l *Locker) grant(e *entry) grant {
	now := time.Now()
	l.last = max(l.last+1, uint64(now.UnixMicro()))
	e.fence, e.since, e.until = dlock.Fence{Token: l.last, Owner: rand.Text()}, now, now.Add(l.ttl)
	return grant{e.fence, now}
}

// pass ends the grant of e: the first waiter gets the key, or nobody has it.
func (l *Locker) pass(key string, e *entry) {
	if len(e.queue) == 0 {
		delete(l.keys, key)
		return
	}
	w := e.queue[0]
	e.queue = e.queue[1:]
	w.granted <- l.grant(e)
}

// AcquireAll implements [dlock.MultiLocker]. It waits for one key after the other.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, nil, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}
