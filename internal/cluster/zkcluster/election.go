package zkcluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// Election implements [cluster.Election] as a lock: a term is a lease, and its number the fencing token. The lock says
// neither who leads nor since when, so the leader announces that.
type Election struct {
	c         *Cluster
	locker    dlock.Locker
	key, name string
}

var _ cluster.Election = (*Election)(nil)

// NewElection returns the instance of that name as a candidate in the election of that key. locker is a zklock on the
// session of c: candidates wait in its queue, in which each watches its predecessor.
func NewElection(c *Cluster, locker dlock.Locker, key, name string) (*Election, error) {
	err := cluster.Member{Name: name}.Validate()
	if key == "" || locker == nil {
		err = errors.Join(err, errors.New("a key and a locker are required"))
	}
	if err != nil {
		return nil, fmt.Errorf("zkcluster: election: %w", err)
	}
	return &Election{c, locker, key, name}, nil
}

// Campaign implements [cluster.Election]. Candidates are elected in the order in which they came. A campaign that begins
// again does so behind all that wait.
func (e *Election) Campaign(ctx context.Context) (*cluster.Term, error) {
	pauses := backoff.Decorrelated{Min: 50 * time.Millisecond, Max: time.Second}
	for pause := time.Duration(0); ; {
		lease, err := e.locker.Acquire(ctx, "election:"+e.key)
		switch {
		case err == nil:
			return e.begin(ctx, lease), nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("zkcluster: campaign for %q: %w", e.key, err)
		}
		e.c.cfg.OnError(fmt.Errorf("zkcluster: campaign for %q: %w", e.key, err))
		pause = pauses.Next(pause)
		if !backoff.Sleep(ctx, pause) {
			return nil, fmt.Errorf("zkcluster: campaign for %q: %w: %w", e.key, dlock.Ended(ctx), err)
		}
	}
}

// begin starts the goroutine that keeps the announcement posted. It ends soon after the term does; Resign waits for it.
func (e *Election) begin(ctx context.Context, lease *dlock.Lease) *cluster.Term {
	held, cancel := lease.Context(context.WithoutCancel(ctx))
	posted := make(chan struct{})
	leader := cluster.Leader{Name: e.name, Fence: lease.Fence(), Since: time.Now().Truncate(time.Millisecond)}
	go func() {
		defer close(posted)
		defer cancel()
		if err := e.c.Announce(held, e.key, leader); err != nil {
			e.c.cfg.OnError(fmt.Errorf("zkcluster: announcement of the leader of %q: %w", e.key, err))
		}
	}()
	return cluster.NewTerm(held, leader, func(ctx context.Context) error {
		err := lease.Release(ctx)
		<-posted
		return err
	})
}

// Observe implements [cluster.Election].
func (e *Election) Observe(ctx context.Context) iter.Seq2[cluster.Leader, error] {
	return e.c.Leaders(ctx, e.key)
}
