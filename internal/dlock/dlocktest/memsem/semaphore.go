// Package memsem is a semaphore in the memory of one process, for tests and examples. It uses the clock of package
// time, so it runs in a synctest bubble. A service of one process has golang.org/x/sync/semaphore for that.
package memsem

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

// Config is the configuration of a [Semaphore].
type Config struct {
	Permits int           // how many permits each key has; 0 means 1
	TTL     time.Duration // how long a grant lasts without renewal; 0 means 30 s
}

// Semaphore is a service of semaphores in memory. Its clients share one. It grants permits of a key in the order of
// the calls of Acquire, so a waiter for few permits passes no waiter for many.
//
// Each operation counts the free permits from the grants that have not expired, so no counter can drift from them.
type Semaphore struct {
	permits int
	ttl     time.Duration
	renewer *driver.Renewer

	mu     sync.Mutex
	keys   map[string]*pool // with a holder or a waiter
	limits map[string]int   // of keys that were resized
	last   uint64           // token of the latest fencing token of any key
}

var (
	_ dlock.Semaphore = (*Semaphore)(nil)
	_ dlock.Resizer   = (*Semaphore)(nil)
)

// New returns a Semaphore of which nothing is held.
func New(cfg Config) *Semaphore {
	s := &Semaphore{
		permits: cmp.Or(cfg.Permits, 1),
		ttl:     cmp.Or(cfg.TTL, 30*time.Second),
		keys:    map[string]*pool{},
		limits:  map[string]int{},
	}
	s.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: s.ttl, Renew: s.renew})
	return s
}

// TryAcquire implements [dlock.Semaphore].
func (s *Semaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := driver.CheckPermits(key, n, s.limit(key)); err != nil {
		return nil, fmt.Errorf("memsem: %w", err)
	}
	p := s.pool(key)
	defer s.forget(key, p)
	s.serve(key, p)
	if len(p.queue) > 0 || n > s.free(key, p) {
		return nil, fmt.Errorf("memsem: %d permits of %q: %w", n, key, dlock.ErrHeld)
	}
	return s.lease(ctx, key, s.grant(p, n)), nil
}

// Acquire implements [dlock.Semaphore].
func (s *Semaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	if ctx.Err() != nil {
		return nil, dlock.Ended(ctx)
	}
	s.mu.Lock()
	if err := driver.CheckPermits(key, n, s.limit(key)); err != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("memsem: %w", err)
	}
	p, w := s.pool(key), &permitWaiter{n: n, granted: make(chan verdict, 1)}
	p.queue = append(p.queue, w)
	s.serve(key, p)
	expire := time.NewTimer(s.untilLapse(p))
	s.mu.Unlock()
	defer expire.Stop()
	for {
		select {
		case v := <-w.granted:
			if v.err != nil {
				return nil, v.err
			}
			return s.lease(ctx, key, v.grant), nil
		case <-expire.C:
			expire.Reset(s.poll(key))
		case <-ctx.Done():
			s.leave(key, w)
			return nil, dlock.Ended(ctx)
		}
	}
}

// Resize implements [dlock.Resizer].
func (s *Semaphore) Resize(ctx context.Context, key string, permits int) error {
	if ctx.Err() != nil {
		return dlock.Ended(ctx)
	}
	if permits < 1 {
		return fmt.Errorf("memsem: resize %q to %d: %w", key, permits, dlock.ErrInvalidPermits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[key] = permits
	if p, ok := s.keys[key]; ok {
		s.refuse(key, p)
		s.serve(key, p)
		s.forget(key, p)
	}
	return nil
}

// Expire ends all grants of key at once, as if their TTLs had passed. It is for tests.
func (s *Semaphore) Expire(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.keys[key]; ok {
		clear(p.held)
		s.serve(key, p)
		s.forget(key, p)
	}
}

// lease turns a grant into what the caller gets. It does not block, and may run under mu.
func (s *Semaphore) lease(ctx context.Context, key string, g grant) *dlock.Lease {
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: g.fence, Sent: g.sent, TTL: s.ttl, Renewer: s.renewer,
		Release: func(context.Context) error {
			return s.mine(key, g.fence, func(p *pool) { delete(p.held, g.fence) })
		},
	})
}

// renew is for the Renewer.
func (s *Semaphore) renew(_ context.Context, held []dlock.Held) []error {
	errs := make([]error, len(held))
	for i, h := range held {
		errs[i] = s.mine(h.Key, h.Fence, func(p *pool) { p.held[h.Fence].until = time.Now().Add(s.ttl) })
	}
	return errs
}

// mine runs f if fence still holds permits of key, and hands on what is free then.
func (s *Semaphore) mine(key string, fence dlock.Fence, f func(*pool)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.keys[key]
	if !ok || p.held[fence] == nil || !time.Now().Before(p.held[fence].until) {
		return &dlock.LostError{Key: key, Fence: fence, Reason: dlock.Expired}
	}
	f(p)
	s.serve(key, p)
	s.forget(key, p)
	return nil
}

// poll hands on what has expired, and returns when to poll again.
func (s *Semaphore) poll(key string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.keys[key]
	if !ok {
		return s.ttl
	}
	s.serve(key, p)
	s.forget(key, p)
	return s.untilLapse(p)
}

// leave takes w out of the queue, which may let those behind it through. A grant
// that came at the same moment continues to the next.
func (s *Semaphore) leave(key string, w *permitWaiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.keys[key]
	if !ok {
		return
	}
	select {
	case v := <-w.granted:
		delete(p.held, v.fence)
	default:
		p.queue = slices.DeleteFunc(p.queue, func(other *permitWaiter) bool { return other == w })
	}
	s.serve(key, p)
	s.forget(key, p)
}
