package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
)

// Term is the time in which an instance leads: a lease, under the name of its leader.
// Its methods are safe for concurrent use.
type Term struct {
	election *Election
	lease    *dlock.Lease
	leader   Leader
	posted   chan struct{} // closed when the announcement has been taken down
}

// begin starts the goroutine that keeps the announcement posted. It ends soon after the
// term does; Resign waits for it.
func (e *Election) begin(ctx context.Context, lease *dlock.Lease) *Term {
	t := &Term{
		election: e, lease: lease, posted: make(chan struct{}),
		leader: Leader{e.cfg.Name, lease.Fence(), time.Now().Truncate(time.Millisecond)},
	}
	held, cancel := lease.Context(context.WithoutCancel(ctx))
	go func() {
		defer close(t.posted)
		defer cancel()
		if err := e.cfg.Registry.Announce(held, e.cfg.Key, t.leader); err != nil {
			e.cfg.OnError(fmt.Errorf("cluster: announcement of the leader of %q: %w", e.cfg.Key, err))
		}
	}()
	return t
}

// Fence returns the fence of this term, for what the leader changes to check. Its
// token grows from term to term, and its owner is another one in each.
func (t *Term) Fence() dlock.Fence { return t.leader.Fence }

// Leader returns the announcement that others see.
func (t *Term) Leader() Leader { return t.leader }

// Done is closed when the term ends: when it is lost, or when Resign is called. A
// loss is known here before another instance can be elected, as package dlock says.
func (t *Term) Done() <-chan struct{} { return t.lease.Done() }

// Err returns nil during the term, then a [*dlock.LostError] or [dlock.ErrReleased].
func (t *Term) Err() error { return t.lease.Err() }

// Context returns a child of parent that is cancelled when the term ends, with Err as
// its cause. The caller must call the cancel function.
func (t *Term) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return t.lease.Context(parent)
}

// Resign ends the term, so that the next candidate is elected at once. The work must have ended before. Resign uses
// only the values of ctx, and the store limits its time. It returns the [*dlock.LostError] if the term was lost before,
// and [dlock.ErrReleased] if Resign was called before. It returns any other error if the store did not answer; then the
// term expires there by itself. After any error the term is over.
func (t *Term) Resign(ctx context.Context) error {
	err := t.lease.Release(ctx)
	<-t.posted
	if err != nil && !errors.Is(err, dlock.ErrReleased) {
		return fmt.Errorf("cluster: resign from %q: %w", t.election.cfg.Key, err)
	}
	return err
}
