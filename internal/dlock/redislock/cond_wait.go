package redislock

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// Wait implements [dlock.Cond]. Like a waiter in the queue, it shows itself every
// second, or Redis takes it for dead and signals pass it by.
func (c *Cond) Wait(ctx context.Context, lease *dlock.Lease) (*dlock.Lease, error) {
	key, id := lease.Key(), c.l.notifier.NewID()
	pushes, leave := c.l.notifier.Join(ctx, id)
	defer leave()
	begun := time.Now()
	err := lease.Yield(ctx, func(bounded context.Context) error {
		return c.sleep(bounded, lease.Held(), id, begun)
	})
	if err != nil {
		return nil, fmt.Errorf("redislock: wait with %q: %w", key, err)
	}
	a := &signaled{acquisition: c.l.newAcquisition(key, id), c: c}
	a.Attempt, a.Pushes, a.Queued = a, pushes, begun
	a.Rollback, a.Signaled = c.rollback, true
	lease, err = a.Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("redislock: wait with %q: %w", key, err)
	}
	return lease, nil
}

// sleep releases the grant and begins to wait, in one script.
func (c *Cond) sleep(ctx context.Context, held dlock.Held, id string, now time.Time) error {
	reply, _, err := c.run(ctx, condWaitScript, held.Key, value(held), id, c.l.notifier.Stamp(now))
	if err == nil {
		return driver.Verdict(held, reply)
	}
	if redisx.Uncertain(err) {
		c.rollback.Add(ctx, dlock.Held{Key: held.Key, Fence: dlock.Fence{Owner: id}})
		err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	// The holder has ended its lease, whether Redis knows or not.
	c.l.abandon(ctx, held.Key, held.Fence.Owner)
	return err
}

// signaled is the acquisition of a waiter that gets the key after a signal.
type signaled struct {
	*acquisition

	c *Cond
}

// Ask implements [rediswait.Attempt]: it reads the state of the waiter.
func (a *signaled) Ask(ctx context.Context) (*dlock.Lease, time.Duration, error) {
	lease, _, err := a.ask(ctx, func(stamp string) (any, time.Time, error) {
		return a.c.run(ctx, condCheckScript, a.key, a.id, a.l.ttl, stamp)
	})
	return lease, 0, err // without one: in the queue, or not signaled yet
}
