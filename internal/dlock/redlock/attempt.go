package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
)

// try makes one attempt. If another owner has the key it also returns for how long, if
// that owner does not renew.
func (l *Locker) try(ctx context.Context, key string) (*dlock.Lease, time.Duration, error) {
	sent := time.Now()
	sending, decided := context.WithCancel(context.WithoutCancel(ctx))
	defer decided()
	b := l.hold(sending, key)
	won, votes := b.decide(ctx)
	if won {
		return l.lease(ctx, b, sent), 0, nil
	}
	decided()
	b.withdraw(ctx)
	var (
		left time.Duration
		errs []error
	)
	for _, v := range votes {
		left = max(left, v.left)
		if v.err != nil {
			errs = append(errs, v.err)
		}
	}
	c := count(votes)
	lost, unavailable := c[pending]+c[granted]+c[acked] < l.quorum, c[unsent]+c[unknown]
	switch {
	case lost && unavailable <= len(votes)-l.quorum: // they alone did not decide it
		return nil, max(left, time.Millisecond), fmt.Errorf("redlock: %q: %w", key, dlock.ErrHeld)
	case ctx.Err() != nil:
		return nil, l.cfg.TTL, fmt.Errorf("redlock: acquire %q: %w: %w", key, dlock.ErrUncertain, dlock.Ended(ctx))
	}
	err := fmt.Errorf("%d of %d servers are unavailable: %w", unavailable, len(votes), errors.Join(errs...))
	if c[pending]+c[unknown] > 0 {
		err = fmt.Errorf("%w: %w", dlock.ErrUncertain, err)
	}
	return nil, l.cfg.TTL, fmt.Errorf("redlock: acquire %q: %w", key, err)
}

// withdraw ends an acquisition that was lost. It waits for the servers that have granted to
// forget it, so that the next attempt is not in the way of this one.
func (b *acquisition) withdraw(ctx context.Context) {
	sending, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	asked, answers, _ := b.end(sending)
	for range asked {
		select {
		case <-answers:
		case <-ctx.Done():
			return
		}
	}
}

// revert is for the Rollback of a node.
func (l *Locker) revert(ctx context.Context, n *node, h dlock.Held) (bool, error) {
	keys, args := l.pairs([]dlock.Held{h})
	verdicts, err := n.verdicts(ctx, releaseScript, 1, keys, args)
	return err == nil && verdicts[0] == driver.Done, err
}
