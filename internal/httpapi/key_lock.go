package httpapi

import (
	"context"
	"errors"
	"sync"

	"example.com/shop/internal/idempotency"
)

// keyLocks serializes requests with the same idempotency key within this process. A waiting
// request holds nothing but its connection to the client. Other processes are excluded by the
// store only.
type keyLocks struct {
	mu sync.Mutex
	by map[idempotency.Scope]*keyLock // guarded by mu
}

// keyLock is the lock of one key.
type keyLock struct {
	held  chan struct{} // of capacity 1: full while a request holds the lock
	users int           // requests that hold the lock or wait for it; guarded by mu of keyLocks
}

// acquire locks the key of s, first come, first served, and reports whether the caller had to wait. It blocks until ctx ends. The
// caller must call release. If the deadline of ctx passes first, the error is [idempotency.ErrInFlight].
func (f *keyLocks) acquire(ctx context.Context, s idempotency.Scope) (release func(), waited bool, err error) {
	f.mu.Lock()
	if f.by == nil {
		f.by = make(map[idempotency.Scope]*keyLock)
	}
	l := f.by[s]
	if l == nil {
		l = &keyLock{held: make(chan struct{}, 1)}
		f.by[s] = l
	}
	l.users++
	waited = l.users > 1
	f.mu.Unlock()
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; f.drop(s, l) }, waited, nil
	case <-ctx.Done():
		f.drop(s, l)
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return nil, true, cause
		}
		return nil, true, idempotency.ErrInFlight
	}
}

// drop removes the lock of a key that has no user left.
func (f *keyLocks) drop(s idempotency.Scope, l *keyLock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(f.by, s)
	}
}
