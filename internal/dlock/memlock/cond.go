package memlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
)

// Cond is a condition of the keys of one [Locker]. Its clients share one Cond,
// and a Locker can have several. Waiters are woken first come, first served.
type Cond struct {
	l       *Locker
	waiting map[string][]*condWaiter // by key, guarded by the mutex of the Locker
}

// condWaiter is first in the list of its condition, then in the queue of its key.
type condWaiter struct {
	waiter
	queued chan struct{} // closed when it is in the queue
}

var _ dlock.Cond = (*Cond)(nil)

// NewCond returns a condition of the keys of l, for which nobody waits.
func NewCond(l *Locker) *Cond { return &Cond{l: l, waiting: map[string][]*condWaiter{}} }

// Wait implements [dlock.Cond].
func (c *Cond) Wait(ctx context.Context, lease *dlock.Lease) (*dlock.Lease, error) {
	key, l := lease.Key(), c.l
	w := &condWaiter{waiter: waiter{granted: make(chan *hold, 1)}, queued: make(chan struct{})}
	err := lease.Yield(ctx, func(context.Context) error {
		return l.held(key, lease.Fence(), func(e *entry) {
			c.waiting[key] = append(c.waiting[key], w)
			l.drop(key, e, e.holder)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("memlock: wait with %q: %w", key, err)
	}
	expire := time.NewTimer(l.ttl)
	expire.Stop() // nobody has to poll while w waits for a signal
	defer expire.Stop()
	queued := w.queued
	for {
		select {
		case h := <-w.granted:
			return l.lease(ctx, key, h), nil
		case <-queued:
			queued = nil
			expire.Reset(l.poll(key))
		case <-expire.C:
			expire.Reset(l.poll(key))
		case <-ctx.Done():
			c.leave(key, w)
			return nil, dlock.Ended(ctx)
		}
	}
}

// Signal implements [dlock.Cond].
func (c *Cond) Signal(ctx context.Context, lease *dlock.Lease) error {
	return c.wake(ctx, lease, func(key string, e *entry) {
		if w := c.next(key); w != nil {
			e.queue = append(e.queue, &w.waiter)
		}
	})
}

// Broadcast implements [dlock.Cond].
func (c *Cond) Broadcast(ctx context.Context, lease *dlock.Lease) error {
	return c.wake(ctx, lease, func(key string, e *entry) {
		for w := c.next(key); w != nil; w = c.next(key) {
			e.queue = append(e.queue, &w.waiter)
		}
	})
}

// wake runs f if lease holds its key.
func (c *Cond) wake(ctx context.Context, lease *dlock.Lease, f func(key string, e *entry)) error {
	err := lease.Err()
	if err == nil && ctx.Err() != nil {
		err = dlock.Ended(ctx)
	}
	if err == nil {
		err = c.l.held(lease.Key(), lease.Fence(), func(e *entry) { f(lease.Key(), e) })
	}
	if err != nil {
		return fmt.Errorf("memlock: wake those who wait with %q: %w", lease.Key(), err)
	}
	return nil
}

// leave takes w out of where it waits. A signal that had reached it continues to
// the next, and so does a grant that came at the same moment.
func (c *Cond) leave(key string, w *condWaiter) {
	l := c.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(c.waiting[key], w); i >= 0 {
		c.set(key, slices.Delete(c.waiting[key], i, i+1))
		return
	}
	e := l.entry(key) // w may have been granted key, and have expired since
	place := slices.Index(e.queue, &w.waiter)
	if place >= 0 {
		e.queue = slices.Delete(e.queue, place, place+1)
	}
	if next := c.next(key); next != nil {
		e.queue = slices.Insert(e.queue, max(place, 0), &next.waiter)
	}
	select {
	case h := <-w.granted:
		l.drop(key, e, h)
	default:
		l.settle(key, e)
	}
}

// The functions below are called with the mutex of the Locker held.

// next removes the longest waiter, and announces that it is about to queue.
func (c *Cond) next(key string) *condWaiter {
	all := c.waiting[key]
	if len(all) == 0 {
		return nil
	}
	c.set(key, all[1:])
	close(all[0].queued)
	return all[0]
}

func (c *Cond) set(key string, waiting []*condWaiter) {
	if len(waiting) == 0 {
		delete(c.waiting, key)
		return
	}
	c.waiting[key] = waiting
}
