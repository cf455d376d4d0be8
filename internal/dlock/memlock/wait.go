package memlock

import (
	"slices"
	"time"
)

type waiter struct {
	granted chan grant // buffered: the granter never waits
}

// poll passes key on if its grant has expired, and returns when to poll again.
func (l *Locker) poll(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return l.ttl
	}
	if !time.Now().Before(e.until) {
		l.pass(key, e)
	}
	return time.Until(e.until)
}

// leave takes w out of the queue. A grant that came at the same moment continues to the next.
func (l *Locker) leave(key string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.keys[key]
	if !ok {
		return
	}
	select {
	case g := <-w.granted:
		if e.fence == g.fence {
			l.pass(key, e)
		}
	default:
		e.queue = slices.DeleteFunc(e.queue, func(other *waiter) bool { return other == w })
	}
}
