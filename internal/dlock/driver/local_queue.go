package driver

import (
	"context"
	"fmt"
	"sync"

	"example.com/shop/internal/dlock"
)

// LocalQueue lets one caller per key through; the other callers wait in a queue, first come,
// first served. It is for backends whose waiters ask the store again and again: of
// those of one process one asks, and not all. The zero value is ready for use.
type LocalQueue struct {
	mu   sync.Mutex
	keys map[string]*queue
}

// queue is the queue of a key. It exists while it is not empty.
type queue struct {
	free chan struct{} // has an element while nobody is through

	// Guarded by LocalQueue.mu:

	callers int      // in the queue, or through
	fault   *outcome // of those who wait now
}

// outcome is an error that comes later.
type outcome struct {
	known chan struct{} // closed when err is set
	err   error
}

// Take waits until the caller is first in the queue, or ctx ends. Without an error, the caller must call pass
// once, when it is done.
//
// A caller that failed because the store is unavailable passes that failure: then all
// who have been waiting fail with it, instead of finding out one after the other.
// Otherwise pass gets nil.
func (t *LocalQueue) Take(ctx context.Context, key string) (pass func(failure error), err error) {
	t.mu.Lock()
	q, ok := t.keys[key]
	if !ok {
		q = &queue{free: make(chan struct{}, 1), fault: newOutcome()}
		q.free <- struct{}{}
		if t.keys == nil {
			t.keys = map[string]*queue{}
		}
		t.keys[key] = q
	}
	q.callers++
	fault := q.fault
	t.mu.Unlock()
	select {
	case <-q.free:
		return func(failure error) {
			t.leave(key, q, failure)
			q.free <- struct{}{}
		}, nil
	case <-fault.known:
		err = fmt.Errorf("dlock: the caller before failed: %v", fault.err) //nolint:errorlint // This one has sent nothing.
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // of two that are ready select chooses either
		err = dlock.Ended(ctx)
	}
	t.leave(key, q, nil)
	return nil, err
}

func newOutcome() *outcome { return &outcome{known: make(chan struct{})} }

func (t *LocalQueue) leave(key string, q *queue, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failure != nil {
		q.fault.err = failure
		close(q.fault.known)
		q.fault = newOutcome()
	}
	if q.callers--; q.callers == 0 {
		delete(t.keys, key)
	}
}
