package dlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is a held lock. Its methods are safe for concurrent use.
type Lease struct {
	hold   *Hold
	held   []Held          // the keys of this lease, Key first
	ctx    context.Context //nolint:containedctx // Done when the lease ends; its cause is the outcome.
	cancel context.CancelCauseFunc
	when   time.Time // when Release was called; set before ctx is done
	within func(context.Context) context.Context

	mu      sync.Mutex
	onEnd   []func(error)
	joined  []func(error) // like onEnd, for joined leases: they do not block
	outcome error         // set once, when onEnd and joined run
}

// NewLease returns a lease of g and keeps g alive. The lease uses the values of ctx and
// outlives it. It costs one timer.
func NewLease(ctx context.Context, g Grant) *Lease {
	h := &Hold{g: g, values: context.WithoutCancel(ctx)}
	if g.MaxHold > 0 {
		h.limit = g.Sent.Add(g.MaxHold)
	}
	l := h.open(h.values, g.Held())
	h.start()
	return l
}

// Key returns the locked key, or the first of several.
func (l *Lease) Key() string { return l.held[0].Key }

// Fence returns the fencing token of this grant, for the resource to check. For several
// keys, it is the token of the first one.
func (l *Lease) Fence() Fence { return l.held[0].Fence }

// Keys returns all keys of the lease, in order.
func (l *Lease) Keys() []string {
	keys := make([]string, len(l.held))
	for i, h := range l.held {
		keys[i] = h.Key
	}
	return keys
}

// FenceOf returns the fencing token of one of Keys, and the zero Fence for any other key. A resource that has
// accepted a token refuses the zero Fence.
func (l *Lease) FenceOf(key string) Fence {
	for _, h := range l.held {
		if h.Key == key {
			return h.Fence
		}
	}
	return Fence{}
}

// Held returns the lease as its backend knows it, without the further keys of a lease of several. It is for backends.
func (l *Lease) Held() Held { return l.held[0] }

// ValidUntil returns the end of the validity of the lease. A renewal moves it. It is zero for a lease that lasts as long as a session, and
// for one that [Join] made of several.
func (l *Lease) ValidUntil() time.Time {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.hold.validUntil
}

// Done is closed when the lease ends: when it is lost, or when Release is called.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held, then a [*LostError] or [ErrReleased].
func (l *Lease) Err() error { return context.Cause(l.ctx) }

// Released returns the time of the call of Release, and whether Release was called before the lease
// was lost.
func (l *Lease) Released() (time.Time, bool) {
	if !errors.Is(l.Err(), ErrReleased) {
		return time.Time{}, false
	}
	return l.when, true
}

// Context returns a child of parent that is cancelled when the lease ends, with
// Err as its cause. The caller must call the cancel function. The user of the context is
// the holder: an acquisition of the same key with it does not wait; see [Reenter].
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if l.within != nil {
		parent = l.within(parent)
	}
	ctx, cancel := context.WithCancelCause(l.hold.carry(parent))
	if l.ctx.Err() != nil {
		cancel(l.Err()) // AfterFunc alone would cancel too late to stop the first step
	}
	stop := context.AfterFunc(l.ctx, func() { cancel(l.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}

// Within has [Lease.Context] add the values of f to its parent. It is for a decorator, which calls it before it returns the lease.
func (l *Lease) Within(f func(parent context.Context) context.Context) { l.within = f }

// OnEnd calls f once, with the outcome: [ErrReleased], a [*LostError], or the
// error of a failed release. If the lease has ended, OnEnd calls f at once. On a release, f runs before Release
// returns. After a loss, f runs on a goroutine of its own, where it may block and may close the backend.
// Functions registered before the end run one after the other,
// in order. A function registered later does not wait for them.
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

// Release releases the lock. If a holder has several leases, the last Release
// does, and the others only end their lease. Release uses the values and the deadline of ctx, but ignores its end: it
// works with a ctx that has ended. The call is bounded by the TTL, by 5 seconds, and by the deadline
// or half a second, whichever is later. It waits for a renewal in flight, so that no renewal follows the
// release. It returns the [*LostError] if the lease was lost or the store
// has another owner or none, and [ErrReleased] if it was released before.
// Any other error means that the store did not answer in time; then a later attempt or the TTL frees the key.
// After any error the lease is over.
func (l *Lease) Release(ctx context.Context) error {
	last, err := l.hold.leave(l, false)
	if err != nil {
		return err
	}
	if last {
		err = l.hold.release(ctx, l.hold.g.Release)
	}
	l.finish(cmp.Or(err, ErrReleased))
	return err
}

// Yield ends l as Release does, with give instead of the release, so that a [Cond] releases and queues in one step.
// It returns the error of give. If l has ended, it returns the [*LostError] or [ErrReleased] without calling give. If
// l cannot be released for a wait with ctx (see [Cond]), it returns [ErrReentry], and l continues. The renewals of l
// end before give is called. Yield is for backends.
func (l *Lease) Yield(ctx context.Context, give func(ctx context.Context) error) error {
	if err := l.mayYield(ctx); err != nil {
		return err
	}
	if _, err := l.hold.leave(l, true); err != nil {
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

// Lose ends the leases of the grant as lost, if they have not ended before. It never waits. It is for backends.
func (l *Lease) Lose(err error) { l.hold.Lose(err) }

func (l *Lease) finish(outcome error) {
	for _, f := range l.settle(outcome) {
		f(outcome)
	}
}

// settle sets the outcome, and returns the functions of OnEnd.
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
