package dlock

import (
	"context"
	"sync"
)

// Turns lets one caller per key through, the others wait for their turn, first come,
// first served. It is for backends whose waiters ask the store again and again: of
// those of one process one asks, and not all. The zero value is ready for use.
type Turns struct {
	mu   sync.Mutex
	keys map[string]*turn
}

// turn is the queue of a key, which exists while anybody is in it.
type turn struct {
	callers int           // in the queue, or through; guarded by Turns.mu
	free    chan struct{} // has an element while nobody is through
}

// Take waits for the turn of the caller, or for the end of ctx. After an error it is
// not the caller's turn; otherwise pass must be called, once, when it is over.
func (t *Turns) Take(ctx context.Context, key string) (pass func(), err error) {
	t.mu.Lock()
	q, ok := t.keys[key]
	if !ok {
		q = &turn{free: make(chan struct{}, 1)}
		q.free <- struct{}{}
		if t.keys == nil {
			t.keys = map[string]*turn{}
		}
		t.keys[key] = q
	}
	q.callers++
	t.mu.Unlock()
	select {
	case <-q.free:
		return func() {
			q.free <- struct{}{}
			t.leave(key, q)
		}, nil
	case <-ctx.Done():
		t.leave(key, q)
		return nil, Ended(ctx)
	}
}

func (t *Turns) leave(key string, q *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.callers--; q.callers == 0 {
		delete(t.keys, key)
	}
}
