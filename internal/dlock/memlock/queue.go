package memlock

import (
	"crypto/rand"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// entry is one key. Somebody waits only while it has a holder.
type entry struct {
	holder *hold
	queue  []*waiter // first come first
}

// hold is a grant.
type hold struct {
	fence        dlock.Fence
	since, until time.Time // until is when it expires
}

type waiter struct {
	granted chan *hold // buffered: the granter never waits
}

// poll passes key on if its grant has expired, and returns when to poll again.
func (l *Locker) poll(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return l.ttl
	}
	l.settle(key, e)
	if e.holder == nil {
		return l.ttl
	}
	return time.Until(e.holder.until)
}

// leave takes w out of its queue. A grant that came at the same moment continues to the next.
func (l *Locker) leave(key string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return
	}
	select {
	case h := <-w.granted:
		l.drop(key, e, h)
	default:
		e.queue = slices.DeleteFunc(e.queue, func(other *waiter) bool { return other == w })
	}
}

// The functions below are called with mu held.

// entry returns the entry of key, after it has taken an expired grant away.
func (l *Locker) entry(key string) *entry {
	e, ok := l.keys[key]
	if !ok {
		e = &entry{}
	}
	l.settle(key, e)
	l.keys[key] = e
	return e
}

// grant makes the caller the holder. The token follows the clock, as that of other backends does: a resource remembers
// fencing tokens for longer than this process lives.
func (l *Locker) grant(e *entry) *hold {
	now := time.Now()
	l.last = max(l.last+1, uint64(now.UnixMicro()))
	e.holder = &hold{dlock.Fence{Token: l.last, Owner: rand.Text()}, now, now.Add(l.ttl)}
	return e.holder
}

// drop ends h.
func (l *Locker) drop(key string, e *entry, h *hold) {
	h.until = time.Time{}
	l.settle(key, e)
}

// settle takes an expired grant away, and grants the key to the next waiter.
func (l *Locker) settle(key string, e *entry) {
	if e.holder != nil && time.Now().Before(e.holder.until) {
		return
	}
	e.holder = nil
	if len(e.queue) == 0 {
		delete(l.keys, key)
		return
	}
	w := e.queue[0]
	e.queue = e.queue[1:]
	w.granted <- l.grant(e)
}
