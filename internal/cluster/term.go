package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"example.com/shop/internal/dlock"
)

// Term is the time in which an instance leads. Its methods are safe for concurrent use.
type Term struct {
	leader Leader
	ctx    context.Context //nolint:containedctx // Done when the term is over, and its cause says why.
	end    context.CancelCauseFunc
	asked  atomic.Bool // whether Resign was called
	resign func(ctx context.Context) error
}

// NewTerm returns a term of l that lasts until held ends, with the loss as its cause, or until Resign. The latter ends
// the term and then calls resign, once, even after a loss. It is for backends.
func NewTerm(held context.Context, l Leader, resign func(ctx context.Context) error) *Term {
	t := &Term{leader: l, resign: resign}
	t.ctx, t.end = context.WithCancelCause(held)
	return t
}

// Fence returns the fence of this term, for what the leader changes to check. Its
// token grows from term to term, and its owner is another one in each.
func (t *Term) Fence() dlock.Fence { return t.leader.Fence }

// Leader returns the leader as others see it.
func (t *Term) Leader() Leader { return t.leader }

// Done is closed when the term ends: when it is lost, or when Resign is called. Unless the process was paused, a
// loss is known here before another instance can be elected.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// Err returns nil during the term, then an error that matches [dlock.ErrLost] or [dlock.ErrReleased].
func (t *Term) Err() error { return context.Cause(t.ctx) }

// Context returns a child of parent that is cancelled when the term ends, with Err as
// its cause. The caller must call the cancel function.
func (t *Term) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if t.ctx.Err() != nil {
		cancel(t.Err()) // AfterFunc alone would cancel too late to stop the first step
	}
	stop := context.AfterFunc(t.ctx, func() { cancel(t.Err()) })
	return ctx, func() { stop(); cancel(nil) }
}

// Resign ends the term, so that the next candidate is elected at once. The work must have ended before. Resign uses
// only the values of ctx, and the store limits its time. It returns the loss if the term was lost before, and
// [dlock.ErrReleased] if Resign was called before. It returns any other error if the store did not answer; then the
// term expires there by itself. After any error the term is over.
func (t *Term) Resign(ctx context.Context) error {
	if !t.asked.CompareAndSwap(false, true) {
		return t.Err()
	}
	t.end(dlock.ErrReleased) // unless it was lost
	lost, err := t.Err(), t.resign(context.WithoutCancel(ctx))
	if !errors.Is(lost, dlock.ErrReleased) {
		err = lost
	}
	if err != nil {
		return fmt.Errorf("cluster: resign: %w", err)
	}
	return nil
}
