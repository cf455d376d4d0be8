package waitlist

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/dlock"
)

const (
	// senders bounds how many keys are told of at the same time.
	senders = 64

	// gap is the least time between two notifications of one key by one process.
	gap = 10 * time.Millisecond
)

// notices are the keys whose waiters are to be told.
type notices struct {
	news chan struct{} // has an element if fresh is not empty

	mu    sync.Mutex
	fresh []string        // that nobody is at yet, in the order in which they came
	due   map[string]bool // those, and those that somebody is at: whether there is something to tell
}

func newNotices() notices {
	return notices{news: make(chan struct{}, 1), due: map[string]bool{}}
}

// Notify says that units of keys came back. Call it after the commit, or a waiter
// looks too early. It does not block and does no input or output: Run tells the
// waiters of all processes. Until it does, notifications of a key are one. A key
// that Wait refuses is left out.
func (w *Waitlist) Notify(keys ...string) {
	w.mu.Lock()
	for _, key := range keys {
		if !validKey(key) {
			continue
		}
		if _, known := w.due[key]; !known {
			w.fresh = append(w.fresh, key)
		}
		w.due[key] = true
	}
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// Run tells waiters until ctx ends, and returns nil then. It is called once. What
// has not been told by then is found by re-checks.
func (w *Waitlist) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	slots := make(chan struct{}, senders)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.news:
		}
		for _, key := range w.take() {
			select {
			case <-ctx.Done():
				return nil
			case slots <- struct{}{}:
			}
			group.Go(func() {
				defer func() { <-slots }()
				w.tell(ctx, key)
			})
		}
	}
}

// take returns the keys that nobody is at.
func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.fresh
	n.fresh = nil
	return fresh
}

// begin reports whether there is something to tell of key. If not, the caller is
// no longer at it.
func (n *notices) begin(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.due[key] {
		delete(n.due, key)
		return false
	}
	n.due[key] = false
	return true
}

// tell sends notifications of key until there is none.
func (w *Waitlist) tell(ctx context.Context, key string) {
	for ctx.Err() == nil && w.begin(key) {
		if err := w.send(ctx, key); err != nil && ctx.Err() == nil {
			w.cfg.OnError(key, fmt.Errorf("waitlist: notify: %w", err))
		}
		backoff.Sleep(ctx, gap)
	}
}

// send wakes the first in line, if there is a line. After Recheck it gives up,
// because whoever waits has looked by then.
//
// It wakes all who wait with the condition. That is one waiter and those that were
// first before: if their processes have died, a single signal could be theirs.
func (w *Waitlist) send(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Recheck)
	defer cancel()
	if w.deserted(ctx, key) {
		return nil
	}
	lease, err := w.cfg.Lock.Acquire(ctx, unitsKey(key))
	if err != nil {
		return err
	}
	err = w.cfg.Cond.Broadcast(ctx, lease)
	return cmp.Or(err, lease.Release(ctx))
}

// deserted reports whether nobody stands in line, where that can be known. Who
// comes later looks first, and sees what was committed before.
func (w *Waitlist) deserted(ctx context.Context, key string) bool {
	line, ok := w.cfg.Line.(dlock.Inspector)
	if !ok {
		return false
	}
	state, err := line.Inspect(ctx, lineKey(key))
	return err == nil && !state.Held && state.Waiters == 0
}
