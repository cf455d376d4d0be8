package memlock

import (
	"slices"
	"time"
)

type waiter struct {
	granted chan grant // buffered: the granter never waits
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
func (l *RW) leave(key string, w *waiter, write bool) {
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
		*queue = slices.DeleteFunc(*queue, func(other *waiter) bool { return other == w })
		l.settle(key, e) // readers waited for a writer that has left
	}
}
