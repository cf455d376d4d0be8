package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/redisx"
)

// Wait implements [dlock.Cond]. Like a waiter in the queue, it shows itself every
// second, or Redis takes it for dead and signals pass it by.
func (c *Cond) Wait(ctx context.Context, lease *dlock.Lease) (*dlock.Lease, error) {
	key, id := lease.Key(), c.l.hub.NewID()
	w := c.l.hub.Join(ctx, keysOf(c.l.cfg.Prefix, key).lock, id)
	defer w.Leave()
	begun := time.Now()
	err := lease.Yield(ctx, func(bounded context.Context) error {
		return c.sleep(bounded, dlock.Held{Key: key, Fence: lease.Fence()}, id, begun)
	})
	if err != nil {
		return nil, fmt.Errorf("redislock: wait with %q: %w", key, err)
	}
	return c.wait(ctx, w, key, id, begun)
}

// sleep releases the grant and begins to wait, in one script.
func (c *Cond) sleep(ctx context.Context, held dlock.Held, id string, now time.Time) error {
	reply, _, err := c.start(ctx, condWaitScript, held.Key, value(held), id, c.l.hub.Stamp(now)).Wait()
	switch {
	case err == nil:
		return driver.Verdict(held, reply)
	case redisx.Refused(err), errors.Is(err, redisx.ErrUnsent):
	default:
		c.abandon(ctx, held.Key, id)
		err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	// The holder has ended its lease, whether Redis knows or not.
	c.l.abandon(ctx, held.Key, held.Fence.Owner)
	return err
}

// wait returns with the grant, or when ctx has ended, or when Redis has not
// answered for a TTL. A failed request costs a waiter nothing until then.
func (c *Cond) wait(ctx context.Context, w *redisx.Wait, key, id string, known time.Time) (*dlock.Lease, error) {
	doubt := false // a request was sent and not answered
	for {
		g, err := c.l.listen(ctx, w, 0)
		if err != nil {
			return nil, c.leave(ctx, key, id, doubt, err)
		}
		for again := g.fence.Token == 0; again; {
			var a answer
			now := time.Now()
			a, err = c.check(ctx, key, id, now)
			doubt = doubt || err != nil && redisx.Uncertain(err)
			if err == nil {
				known, g = now, a.grant(id)
			} else if ctx.Err() != nil || time.Since(known) > c.l.cfg.TTL {
				return nil, c.leave(ctx, key, id, doubt, err)
			}
			again = a.again
		}
		if g.fence.Token == 0 {
			continue
		}
		if doubt { // that request may arrive when the grant is over, and take the key for nobody
			g.ended = func(error) { c.l.abandon(ctx, key, id) }
		}
		return c.l.lease(ctx, key, g), nil
	}
}

// check asks what has become of the waiter.
func (c *Cond) check(ctx context.Context, key, id string, now time.Time) (answer, error) {
	ttl := c.l.cfg.TTL.Milliseconds()
	reply, sent, err := c.start(ctx, condCheckScript, key, id, ttl, c.l.hub.Stamp(now)).Wait()
	if err != nil {
		return answer{}, err
	}
	switch r := reply.(type) {
	case int64: // in the queue, or not signalled yet
		return answer{again: r == -1}, nil
	case string:
		if token, err := strconv.ParseUint(r, 10, 64); err == nil && token > 0 {
			return answer{token: token, sent: sent}, nil
		}
	}
	return answer{}, fmt.Errorf("reply %v", reply)
}

// leave gives up what the waiter has. It waits for Redis for a moment, so that
// usually nothing is left when Wait returns, and its signal has gone on.
func (c *Cond) leave(ctx context.Context, key, id string, doubt bool, why error) error {
	if ctx.Err() != nil {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.l.cfg.Timeout/4)
		defer cancel()
		if found, err := c.takeBack(soon, key, id); err == nil && found {
			if doubt {
				c.l.abandon(ctx, key, id) // that request may be on its way yet
			}
			return dlock.Ended(ctx)
		}
	}
	c.abandon(ctx, key, id)
	return fmt.Errorf("redislock: wait with %q: %w: %w", key, dlock.ErrUncertain, driver.InTime(ctx, why))
}
