package dlocktest

import (
	"context"
	"errors"

	"example.com/shop/internal/dlock"
)

// Cond returns a client that takes keys of l and waits with c, which belongs to l.
// It makes one call at a time.
func (h *History) Cond(l dlock.Locker, c dlock.Cond) *HistoryClient {
	return &HistoryClient{h: h, id: h.client(), s: single{l}, cond: c}
}

// Wait gives l up and waits for a signal. The lease is nil after an error.
func (c *HistoryClient) Wait(ctx context.Context, l *HistoryLease) (*HistoryLease, error) {
	sleep := c.h.add(c, c.id, Call{Op: OpSleep, Key: l.Key(), Owner: l.owner})
	wake := c.h.add(c, c.h.client(), Call{Op: OpWake, Key: l.Key(), N: 1})
	lease, err := c.cond.Wait(ctx, l.Lease)
	if err == nil {
		next := c.granted(wake, lease)
		c.h.slept(sleep, next.owner)
		return next, nil
	}
	// It may have slept or not, and may have been woken or not. The lease is over.
	c.h.uncertain(sleep, OpRelease)
	c.h.uncertain(wake, OpAcquire)
	c.id = c.h.client()
	return nil, err
}

// Signal wakes one who waits, as the holder of l, or all of them.
func (c *HistoryClient) Signal(ctx context.Context, l *HistoryLease, all bool) error {
	call, send := Call{Op: OpSignal, Key: l.Key(), Owner: l.owner}, c.cond.Signal
	if all {
		call.Op, send = OpBroadcast, c.cond.Broadcast
	}
	e := c.h.add(c, c.id, call)
	err := send(ctx, l.Lease)
	switch {
	case err == nil:
		c.h.end(e, Outcome{Result: Done})
	case errors.Is(err, dlock.ErrLost): // possibly without a word to the store
		c.h.drop(e)
	default:
		c.id = c.h.client()
	}
	return err
}

// slept records that e ended with the next grant, of that owner.
func (h *History) slept(e *event, next string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.call.Next, e.outcome, e.to = next, Outcome{Result: Done}, h.now()
}

// uncertain makes e another operation, whose outcome is unknown.
func (h *History) uncertain(e *event, op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.call.Op = op
}
