package memsem

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// pool is the state of one key: who holds permits, and who waits for some.
type pool struct {
	held  map[dlock.Fence]*permits
	queue []*permitWaiter
}

// grant is what a waiter gets.
type grant struct {
	fence dlock.Fence
	sent  time.Time
}

// permits are what one lease holds.
type permits struct {
	n     int
	until time.Time // when the grant expires
}

// permitWaiter waits for n permits.
type permitWaiter struct {
	n       int
	granted chan verdict // buffered: the granter never waits
}

// verdict ends the wait of a permitWaiter.
type verdict struct {
	grant
	err error
}

// The methods below are called with mu held.

func (s *Semaphore) limit(key string) int { return cmp.Or(s.limits[key], s.permits) }

func (s *Semaphore) pool(key string) *pool {
	p, ok := s.keys[key]
	if !ok {
		p = &pool{held: map[dlock.Fence]*permits{}}
		s.keys[key] = p
	}
	return p
}

// free counts what nobody holds. It is negative while a smaller number of
// permits than before waits for holders to release theirs.
func (s *Semaphore) free(key string, p *pool) int {
	free := s.limit(key)
	for _, held := range p.held {
		free -= held.n
	}
	return free
}

// serve drops what has expired and grants to the head of the queue for as long as
// there is enough for it.
func (s *Semaphore) serve(key string, p *pool) {
	now := time.Now()
	for fence, held := range p.held {
		if !now.Before(held.until) {
			delete(p.held, fence)
		}
	}
	for len(p.queue) > 0 && p.queue[0].n <= s.free(key, p) {
		w := p.queue[0]
		p.queue = p.queue[1:]
		w.granted <- verdict{grant: s.grant(p, w.n)}
	}
}

// refuse ends the wait for more permits than there will be.
func (s *Semaphore) refuse(key string, p *pool) {
	p.queue = slices.DeleteFunc(p.queue, func(w *permitWaiter) bool {
		err := driver.CheckPermits(key, w.n, s.limit(key))
		if err != nil {
			w.granted <- verdict{err: fmt.Errorf("memsem: resized: %w", err)}
		}
		return err != nil
	})
}

// forget drops a key that nobody holds or waits for.
func (s *Semaphore) forget(key string, p *pool) {
	if len(p.held)+len(p.queue) == 0 {
		delete(s.keys, key)
	}
}

// grant gives n permits to a new owner. The token follows the clock, as that of other backends does.
func (s *Semaphore) grant(p *pool, n int) grant {
	now := time.Now()
	s.last = max(s.last+1, uint64(now.UnixMicro()))
	g := grant{fence: dlock.Fence{Token: s.last, Owner: rand.Text()}, sent: now}
	p.held[g.fence] = &permits{n, now.Add(s.ttl)}
	return g
}

// untilLapse is how long the first of the grants still lasts.
func (s *Semaphore) untilLapse(p *pool) time.Duration {
	d := s.ttl
	for _, held := range p.held {
		d = min(d, time.Until(held.until))
	}
	return d
}
