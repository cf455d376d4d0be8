package memlock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(_ context.Context, key string) (dlock.State, error) {
	l.rw.mu.Lock()
	defer l.rw.mu.Unlock()
	state := dlock.State{Key: key}
	e, ok := l.rw.keys[key]
	if !ok {
		return state, nil
	}
	state.Waiters = len(e.writing)
	if h := e.writer; h != nil && time.Now().Before(h.until) {
		state.Held, state.Fence, state.Since, state.TTL = true, e.fence, h.since, time.Until(h.until)
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The holder is notified at once.
func (l *Locker) ForceRelease(_ context.Context, key string) error {
	l.rw.mu.Lock()
	e, ok := l.rw.keys[key]
	if !ok || e.writer == nil {
		l.rw.mu.Unlock()
		return nil
	}
	owner := e.fence.Owner
	l.rw.drop(key, e, e.writer)
	l.rw.mu.Unlock()
	l.rw.renewer.Lose(owner, &dlock.LostError{Key: key, Reason: dlock.Forced})
	return nil
}
