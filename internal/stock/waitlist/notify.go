package waitlist

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

const (
	// senders limits the keys that are notified at the same time.
	senders = 64

	// gap is the least time between two notifications of one key by one process.
	gap = 10 * time.Millisecond
)

// notices are the keys whose waiters are to be notified.
type notices struct {
	news chan struct{} // has an element if fresh is not empty

	mu    sync.Mutex
	fresh []string        // keys without a sender, in the order of arrival
	due   map[string]bool // keys of fresh and of senders: whether a notification is pending
}

func newNotices() notices {
	return notices{news: make(chan struct{}, 1), due: map[string]bool{}}
}

// Notify announces that units of keys were released. Call it after the commit; before, a waiter
// would poll too early. It does not block and does no input or output: Run notifies the
// waiters of all processes. Until then, notifications of a key are merged. Keys
// that Wait refuses are ignored.
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

// Run notifies waiters until ctx ends, and then returns nil. Call it once. Waiters find
// units without a notification by their fallback polls.
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
				w.notify(ctx, key)
			})
		}
	}
}

// take returns the keys without a sender.
func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	fresh := n.fresh
	n.fresh = nil
	return fresh
}

// begin reports whether a notification of key is pending. If not, the caller is
// no longer its sender.
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

// notify sends notifications of key until none is pending.
func (w *Waitlist) notify(ctx context.Context, key string) {
	for ctx.Err() == nil && w.begin(key) {
		if err := w.send(ctx, key); err != nil && ctx.Err() == nil {
			w.cfg.OnError(key, fmt.Errorf("waitlist: notify: %w", err))
		}
		backoff.Sleep(ctx, gap)
	}
}

// send wakes the first waiter, if there is one. It gives up after FallbackPoll,
// because the waiter has polled by then.
//
// It wakes all sleepers of the condition: the first waiter and former first
// waiters. If their processes have died, a single signal could reach one of them.
func (w *Waitlist) send(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.FallbackPoll)
	defer cancel()
	if w.empty(ctx, key) {
		return nil
	}
	lease, err := w.cfg.Lock.Acquire(ctx, unitsKey(key))
	if err != nil {
		return err
	}
	err = w.cfg.Cond.Broadcast(ctx, lease)
	return cmp.Or(err, lease.Release(ctx))
}

// empty reports whether the queue is empty, as far as the lock service can report it. A later waiter
// polls first, and sees earlier commits.
func (w *Waitlist) empty(ctx context.Context, key string) bool {
	queue, ok := w.cfg.Queue.(dlock.Inspector)
	if !ok {
		return false
	}
	state, err := queue.Inspect(ctx, queueKey(key))
	return err == nil && !state.Held && state.Waiters == 0
}
