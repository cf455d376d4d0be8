package memlock

import (
	"crypto/rand"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// The functions of this file decide whose phase it is. They are called with mu held.

// entry returns key with its expired grants taken away.
func (l *RW) entry(key string) *entry {
	e, ok := l.keys[key]
	if !ok {
		e = &entry{}
	}
	l.settle(key, e)
	l.keys[key] = e
	return e
}

// queue returns where writers, or readers, wait.
func (e *entry) queue(write bool) *[]*waiter {
	if write {
		return &e.writing
	}
	return &e.reading
}

// holds yields who has the key.
func (e *entry) holds(yield func(*hold) bool) {
	if e.writer != nil && !yield(e.writer) {
		return
	}
	for _, h := range e.readers {
		if !yield(h) {
			return
		}
	}
}

// free reports whether a newcomer gets in at once.
func (e *entry) free(write bool) bool {
	if e.writer != nil || len(e.writing) > 0 {
		return false
	}
	return !write || len(e.readers) == 0
}

// grant lets one in. The token follows the clock, as that of other backends
// does: a resource remembers fencing tokens for longer than this process lives.
func (l *RW) grant(e *entry, write bool) grant {
	now := time.Now()
	if write || e.fence == (dlock.Fence{}) {
		l.last = max(l.last+1, uint64(now.UnixMicro()))
		e.fence = dlock.Fence{Token: l.last, Owner: rand.Text()}
	}
	h := &hold{id: e.fence.Owner, since: now, until: now.Add(l.ttl)}
	if write {
		e.writer = h
	} else {
		h.id = rand.Text()
		e.readers = append(e.readers, h)
	}
	e.wrote = write
	return grant{h, e.fence, now}
}

// drop ends h.
func (l *RW) drop(key string, e *entry, h *hold) {
	h.until = time.Time{}
	l.settle(key, e)
}

// settle takes expired grants away and begins the next phase if the last one is over.
func (l *RW) settle(key string, e *entry) {
	now := time.Now()
	expired := func(h *hold) bool { return !now.Before(h.until) }
	if e.writer != nil && expired(e.writer) {
		if !e.writer.until.IsZero() { // not dropped: a resource has to refuse what it writes late
			e.fence = dlock.Fence{}
		}
		e.writer = nil
	}
	e.readers = slices.DeleteFunc(e.readers, expired)
	if e.writer != nil {
		return
	}
	switch {
	case len(e.reading) > 0 && (len(e.writing) == 0 || e.wrote):
		for _, w := range e.reading {
			w.granted <- l.grant(e, false)
		}
		e.reading = nil
	case len(e.writing) > 0 && len(e.readers) == 0:
		w := e.writing[0]
		e.writing = e.writing[1:]
		w.granted <- l.grant(e, true)
	case len(e.readers) == 0:
		delete(l.keys, key)
	}
}

// expiry returns when the next grant of e expires.
func (l *RW) expiry(e *entry) time.Duration {
	next := l.ttl
	for h := range e.holds {
		next = min(next, time.Until(h.until))
	}
	return next
}
