package httpapi

import (
	"context"
	"errors"
	"sync"

	"example.com/shop/internal/idempotency"
)

// flights lets one request after the other of those that have the same key be at work in this
// process. Those who wait hold nothing but their connection to the client. What happens in
// other processes is left to the store.
type flights struct {
	mu sync.Mutex
	by map[idempotency.Scope]*flight // guarded by mu
}

// flight is the turn of one key.
type flight struct {
	turn chan struct{} // has room for who is at work
	n    int           // who is at work or waits; guarded by mu of flights
}

// enter waits for the turn of the caller, first come, first served, until ctx ends, and reports
// whether somebody was at work. Whoever entered must leave. When its deadline comes first the error is [idempotency.ErrInFlight].
func (f *flights) enter(ctx context.Context, s idempotency.Scope) (leave func(), waited bool, err error) {
	f.mu.Lock()
	if f.by == nil {
		f.by = make(map[idempotency.Scope]*flight)
	}
	one := f.by[s]
	if one == nil {
		one = &flight{turn: make(chan struct{}, 1)}
		f.by[s] = one
	}
	one.n++
	waited = one.n > 1
	f.mu.Unlock()
	select {
	case one.turn <- struct{}{}:
		return func() { <-one.turn; f.gone(s, one) }, waited, nil
	case <-ctx.Done():
		f.gone(s, one)
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return nil, true, cause
		}
		return nil, true, idempotency.ErrInFlight
	}
}

// gone forgets the key with the last one who wanted it.
func (f *flights) gone(s idempotency.Scope, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.n--; one.n == 0 {
		delete(f.by, s)
	}
}
