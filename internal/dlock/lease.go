package dlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// maxRelease bounds a release for leases whose TTL is longer, or that have none.
const maxRelease = 5 * time.Second

// Grant is what a backend hands over after one successful acquisition.
type Grant struct {
	Key   string
	Fence Fence
	Sent  time.Time     // when the attempt that won was sent
	TTL   time.Duration // how long the store keeps the grant after that; 0 if a session does

	// Extend renews the grant for one TTL, and never takes it again once it is
	// gone: then it returns ErrLost, or a *LostError that says why. Any other
	// error is a failed attempt, and is repeated. It is needed with a TTL only.
	Extend func(ctx context.Context) error

	// Release gives the grant back. It changes nothing and returns as Extend does
	// when the store has another owner, or none.
	Release func(ctx context.Context) error

	// Lost delivers a loss that the store announces: the end of a session, or
	// another holder put in place. Closing it means Expired. It may be nil.
	Lost <-chan error
}

// Lease is a held lock. Its methods are safe for concurrent use.
type Lease struct {
	g      Grant
	ctx    context.Context //nolint:containedctx // Done when the lease ends, and its cause says how.
	cancel context.CancelCauseFunc
	joined chan struct{} // closed when keepAlive has returned
	asked  atomic.Bool   // whether Release was called

	mu      sync.Mutex
	onEnd   []func(error)
	outcome error // set once, when onEnd runs
}

// NewLease starts to keep g alive, in one goroutine that ends with the lease and
// that Release waits for. The lease outlives ctx, from which it takes values only.
func NewLease(ctx context.Context, g Grant) *Lease {
	l := &Lease{g: g, joined: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if g.TTL > 0 && !time.Now().Before(l.trustedUntil(g.Sent)) {
		l.lose(nil) // the process slept through the whole trust window
	}
	go l.keepAlive()
	return l
}

// Key returns the locked key.
func (l *Lease) Key() string { return l.g.Key }

// Fence returns the fence of this grant, for the resource to check.
func (l *Lease) Fence() Fence { return l.g.Fence }

// Done is closed when the lease ends: when it is lost, or when Release is called.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease is held, then a [*LostError] or [ErrReleased].
func (l *Lease) Err() error { return context.Cause(l.ctx) }

// Context returns a child of parent that is cancelled when the lease ends, with
// Err as its cause. The caller must call the cancel function.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if l.ctx.Err() != nil {
		cancel(l.Err()) // AfterFunc alone would cancel a moment too late to stop the first step
	}
	stop := context.AfterFunc(l.ctx, func() { cancel(l.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}

// OnEnd calls f once, with the outcome: [ErrReleased], a [*LostError], or the
// error of a release that failed. It calls f before Release returns, or from
// the goroutine that finds the loss, or at once if the lease has ended.
func (l *Lease) OnEnd(f func(outcome error)) {
	l.mu.Lock()
	outcome := l.outcome
	if outcome == nil {
		l.onEnd = append(l.onEnd, f)
	}
	l.mu.Unlock()
	if outcome != nil {
		f(outcome)
	}
}

// Release gives the lock back. It takes values from ctx and nothing else: a
// dead ctx releases too, and the call is bounded by the TTL, or 5 seconds if
// that is less. It waits for a renewal in flight, so that none is sent after the
// release. It returns the [*LostError] if the lease was lost before or the store
// turns out to have another owner or none, [ErrReleased] if it was released before,
// and any other error if the store did not answer: then the TTL frees the key.
// After any error the lease is over.
func (l *Lease) Release(ctx context.Context) error {
	if !l.asked.CompareAndSwap(false, true) {
		return cmp.Or(l.Err(), ErrReleased)
	}
	l.cancel(ErrReleased)
	if err := l.Err(); errors.Is(err, ErrLost) {
		return err
	}
	limit := maxRelease
	if l.g.TTL > 0 {
		limit = min(limit, l.g.TTL)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	err := l.release(ctx)
	l.finish(cmp.Or(err, ErrReleased))
	return err
}

func (l *Lease) release(ctx context.Context) error {
	select {
	case <-l.joined:
	case <-ctx.Done(): // the renewal ignores its context
		return fmt.Errorf("dlock: release %q: a renewal is still out: %w", l.g.Key, ctx.Err())
	}
	err := l.g.Release(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLost):
		return l.g.lost(err)
	default:
		return fmt.Errorf("dlock: release %q: %w", l.g.Key, err)
	}
}

// trustedUntil is where the trust window of an attempt sent at sent ends. The
// store counts from when it received it, later than sent; a tenth of the TTL
// covers a clock that runs faster there, and a timer that fires late here.
func (l *Lease) trustedUntil(sent time.Time) time.Time { return sent.Add(l.g.TTL - l.g.TTL/10) }

// keepAlive renews every third of the TTL, counted from when the acknowledged
// attempt was sent. The end of trust is a timer of its own: it ends the lease on
// time, even while a renewal is stuck in a call that ignores its context.
func (l *Lease) keepAlive() {
	defer close(l.joined)
	if l.g.TTL == 0 {
		select {
		case <-l.ctx.Done():
		case err := <-l.g.Lost:
			l.lose(err)
		}
		return
	}
	trusted := l.trustedUntil(l.g.Sent)
	expiry := time.AfterFunc(time.Until(trusted), func() { l.lose(nil) })
	defer expiry.Stop()
	next := time.NewTimer(time.Until(l.g.Sent.Add(l.g.TTL / 3)))
	defer next.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case err := <-l.g.Lost:
			l.lose(err)
			return
		case <-next.C:
		}
		sent := time.Now()
		err := l.extend(sent, trusted)
		switch {
		case err == nil:
			trusted = l.trustedUntil(sent)
			expiry.Reset(time.Until(trusted))
			next.Reset(time.Until(sent.Add(l.g.TTL / 3)))
		case errors.Is(err, ErrLost):
			l.lose(err)
			return
		default: // about as often as ten times per TTL, and not in step with others
			next.Reset(l.g.TTL/20 + rand.N(l.g.TTL/20+1))
		}
	}
}

// extend makes one attempt. One that gets no answer leaves room for others.
func (l *Lease) extend(sent, trusted time.Time) error {
	end := sent.Add(l.g.TTL / 6)
	if trusted.Before(end) {
		end = trusted
	}
	ctx, cancel := context.WithDeadline(l.ctx, end)
	defer cancel()
	return l.g.Extend(ctx)
}

func (l *Lease) lose(err error) {
	lost := l.g.lost(err)
	l.cancel(lost)
	if errors.Is(l.Err(), lost) { // otherwise a release or another loss came first
		l.finish(lost)
	}
}

func (l *Lease) finish(outcome error) {
	l.mu.Lock()
	calls := l.onEnd
	l.onEnd, l.outcome = nil, outcome
	l.mu.Unlock()
	for _, f := range calls {
		f(outcome)
	}
}
