package memlock

import (
	"context"
	"time"

	"example.com/shop/internal/dlock"
)

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(_ context.Context, key string) (dlock.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := dlock.State{Key: key}
	e, ok := l.keys[key]
	if !ok {
		return state, nil
	}
	state.Waiters = len(e.queue)
	if h := e.holder; h != nil && time.Now().Before(h.until) {
		state.Held, state.Fence, state.Since, state.TTL = true, h.fence, h.since, time.Until(h.until)
	}
	return state, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The holder is notified at once.
func (l *Locker) ForceRelease(_ context.Context, key string) error {
	l.mu.Lock()
	e, ok := l.keys[key]
	if !ok || e.holder == nil {
		l.mu.Unlock()
		return nil
	}
	owner := e.holder.fence.Owner
	l.drop(key, e, e.holder)
	l.mu.Unlock()
	l.renewer.Lose(owner, &dlock.LostError{Key: key, Reason: dlock.Forced})
	return nil
}
