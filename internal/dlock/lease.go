package dlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is a held lock. Its methods are safe for concurrent use.
type Lease struct {
	hold   *Hold
	held   []Held          // what this lease stands for, Key first
	ctx    context.Context //nolint:containedctx // Done when the lease ends, and its cause says how.
	cancel context.CancelCauseFunc
	asked  atomic.Bool // whether Release was called
	when   time.Time   // when it was; set before ctx is done

	mu      sync.Mutex
	onEnd   []func(error)
	joined  []func(error) // as onEnd, for leases of several: they do not block
	outcome error         // set once, when these run
}

// NewLease starts to keep g alive. The lease outlives ctx, from which it takes
// values only. It costs one timer.
func NewLease(ctx context.Context, g Grant) *Lease {
	h := &Hold{g: g, values: context.WithoutCancel(ctx)}
	l := h.open(h.values, g.Held())
	h.start()
	return l
}

// Key returns the locked key; of several the first one.
func (l *Lease) Key() string { return l.held[0].Key }

// Fence returns the fence of this grant, for the resource to check; of several
// keys that of the first one.
func (l *Lease) Fence() Fence { return l.held[0].Fence }

// Keys returns all keys of the lease, in order.
func (l *Lease) Keys() []string {
	keys := make([]string, len(l.held))
	for i, h := range l.held {
		keys[i] = h.Key
	}
	return keys
}

// FenceOf returns the fence of one of Keys, and the zero Fence for any other
// key, which a resource refuses as soon as it has accepted another.
func (l *Lease) FenceOf(key string) Fence {
	for _, h := range l.held {
		if h.Key == key {
			return h.Fence
		}
	}
	return Fence{}
}

// Done is closed when the lease ends: when it is lost, or when Release is called.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held, then a [*LostError] or [ErrReleased].
func (l *Lease) Err() error { return context.Cause(l.ctx) }

// Released returns when Release was called, and whether it was, and was not too
// late: a lease that is lost first is not released any more.
func (l *Lease) Released() (time.Time, bool) {
	if !errors.Is(l.Err(), ErrReleased) {
		return time.Time{}, false
	}
	return l.when, true
}

// Context returns a child of parent that is cancelled when the lease ends, with
// Err as its cause. The caller must call the cancel function. The context makes
// its user the holder: to acquire the key again with it does not wait; see [Reenter].
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(l.hold.carry(parent))
	if l.ctx.Err() != nil {
		cancel(l.Err()) // AfterFunc alone would cancel a moment too late to stop the first step
	}
	stop := context.AfterFunc(l.ctx, func() { cancel(l.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}

// OnEnd calls f once, with the outcome: [ErrReleased], a [*LostError], or the
// error of a release that failed. It calls f before Release returns; after a loss on
// a goroutine of its own, where f may block, and may close the backend; or at once if
// the lease has ended. Several that were given before the end are called one after the other,
// in order. One that is given later does not wait for them.
func (l *Lease) OnEnd(f func(outcome error)) { l.await(&l.onEnd, f) }

func (l *Lease) await(calls *[]func(error), f func(outcome error)) {
	l.mu.Lock()
	outcome := l.outcome
	if outcome == nil {
		*calls = append(*calls, f)
	}
	l.mu.Unlock()
	if outcome != nil {
		f(outcome)
	}
}

// Release gives the lock back. Of several leases of one holder the last one
// does, the others only end. It takes values and the deadline from ctx, and not its end: a dead
// ctx releases too. The call is bounded by the TTL, by 5 seconds, and by the deadline
// or half a second, whichever is later. It waits for a renewal in flight, so that none is sent after the
// release. It returns the [*LostError] if the lease was lost before or the store
// turns out to have another owner or none, [ErrReleased] if it was released before,
// and any other error if the store did not answer: then the TTL frees the key.
// After any error the lease is over.
func (l *Lease) Release(ctx context.Context) error {
	if !l.asked.CompareAndSwap(false, true) {
		return cmp.Or(l.Err(), ErrReleased)
	}
	last, err := l.hold.leave(l)
	if err != nil {
		return err
	}
	if last {
		err = l.hold.release(ctx, l.hold.g.Release)
	}
	l.finish(cmp.Or(err, ErrReleased))
	return err
}

// Yield ends l as Release does, with give in place of the release: it is how a
// [Cond] releases and queues in one step. It returns what give returned, or,
// without having called it, the [*LostError] or [ErrReleased] when l has ended,
// or [ErrReentry], when l cannot be given up for a wait with ctx: see [Cond]. Then l goes on.
// The renewals of l are over before give is called. It is for backends.
func (l *Lease) Yield(ctx context.Context, give func(ctx context.Context) error) error {
	if err := l.mayYield(ctx); err != nil {
		return err
	}
	if err := l.hold.leaveAlone(l); err != nil {
		return err
	}
	err := l.hold.release(ctx, give)
	l.finish(cmp.Or(err, ErrReleased))
	return err
}

// mayYield returns ErrReentry if l is held with other keys, or would end with ctx.
func (l *Lease) mayYield(ctx context.Context) error {
	if len(l.hold.g.Rest) > 0 {
		return fmt.Errorf("%w: with other keys", ErrReentry)
	}
	c, _ := ctx.Value(chainKey{}).(*chain)
	for ; c != nil; c = c.outer {
		if c.hold == l.hold {
			return fmt.Errorf("%w: the context ends with the lease", ErrReentry)
		}
	}
	return nil
}

// release ends l for its Release or Yield. It is called under the mutex of the hold.
func (l *Lease) release() {
	l.when = time.Now()
	l.cancel(ErrReleased)
}

func (l *Lease) finish(outcome error) {
	for _, f := range l.settle(outcome) {
		f(outcome)
	}
}

// settle sets the outcome, and returns the callers that want to know.
func (l *Lease) settle(outcome error) []func(error) {
	l.mu.Lock()
	joined, calls := l.joined, l.onEnd
	l.joined, l.onEnd, l.outcome = nil, nil, outcome
	l.mu.Unlock()
	for _, f := range joined {
		f(outcome)
	}
	return calls
}
