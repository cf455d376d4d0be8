package redislock

import (
	"context"
	"fmt"
	"math"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/redisx"
)

// Cond is [dlock.Cond] for the keys of one [Locker]. Clients of one store that
// give it the same name have the same condition. Close it before the Locker.
//
// Its data are those of the lock, and a sorted set of the waiters for a signal, by ticket, in the same slot:
// shop:lock:{KEY}:cond:NAME. Like the queue, it expires some seconds after the last request of its last waiter. Each
// operation is one script:
//
//	cond_wait.lua      end this grant (owner and fence), wait for a signal, hand the lock on    O(log n)
//	cond_check.lua     ask again: still asleep, in the queue, or granted                        O(log n)
//	cond_signal.lua    move up to 64 waiters to the queue of the lock                           O(log n) each
//	cond_abandon.lua   leave; a signal, or the lock, goes to the next that waits for a signal   O(log n)
//
// A waiter that was signalled gets the lock as any waiter in the queue does, by a notification, and polls every
// second or less. A Wait that got no answer has ended its lease and holds nothing. Anything that Redis may keep of it
// is released in the background, and Close waits for that.
//
// A silent waiter counts as dead after a few seconds, and signals pass it by. If it resumes, or if the server has
// lost its data, it goes to the queue without a signal, because it may have missed one.
type Cond struct {
	l        *Locker
	name     string
	rollback *driver.Rollback
}

var _ dlock.Cond = (*Cond)(nil)

// NewCond returns the condition with that name for the keys of l. A key can have
// several conditions. The name has no colon and no brace.
func NewCond(l *Locker, name string) (*Cond, error) {
	if err := checkCond(name); err != nil {
		return nil, err
	}
	c := &Cond{l: l, name: name}
	c.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: max(l.cfg.TTL, 2*l.dead()), Pause: l.cfg.Timeout / 4, Timeout: 2 * l.cfg.Timeout, Revert: c.revert,
	})
	return c, nil
}

// Close waits until every wait with an unknown outcome has been rolled back, or a TTL has passed. If ctx ends before,
// Close returns the error of ctx.
func (c *Cond) Close(ctx context.Context) error { return c.rollback.Close(ctx) }

// Signal implements [dlock.Cond].
func (c *Cond) Signal(ctx context.Context, lease *dlock.Lease) error { return c.wake(ctx, lease, 1) }

// Broadcast implements [dlock.Cond]. It wakes up to 64 waiters per round trip.
func (c *Cond) Broadcast(ctx context.Context, lease *dlock.Lease) error {
	return c.wake(ctx, lease, math.MaxInt32)
}

// wake moves up to n waiters to the queue. Dead ones do not count, and a call
// that found nothing else is followed by another.
func (c *Cond) wake(ctx context.Context, lease *dlock.Lease, n int64) error {
	held := lease.Held()
	for more := int64(1); n > 0 && more == 1; {
		if err := lease.Err(); err != nil {
			return fmt.Errorf("redislock: wake those who wait with %q: %w", held.Key, err)
		}
		reply, _, err := c.run(ctx, condSignalScript, held.Key, value(held), n)
		var counts []int64
		if err == nil {
			counts, err = redisx.Ints(reply, 3)
		}
		if err == nil {
			err = driver.Verdict(held, counts[0])
		} else if redisx.Uncertain(err) {
			err = fmt.Errorf("%w: %w", dlock.ErrUncertain, driver.InTime(ctx, err))
		}
		if err != nil {
			return fmt.Errorf("redislock: wake those who wait with %q: %w", held.Key, err)
		}
		n, more = n-counts[1], counts[2]
	}
	return nil
}

// run makes one call of a script, with what all of them have in common.
func (c *Cond) run(ctx context.Context, s redisx.Script, key, first string, more ...any) (any, time.Time, error) {
	return c.l.calls.Run(ctx, s, c.keys(key), c.l.args(first, more...)...)
}

func (c *Cond) revert(ctx context.Context, h dlock.Held) (bool, error) {
	reply, _, err := c.run(ctx, condAbandonScript, h.Key, h.Fence.Owner)
	return reply == int64(1), err
}
