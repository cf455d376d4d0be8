package redlock

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
)

// retry spreads the attempts of a waiter.
var retry = backoff.Decorrelated{Min: 2 * time.Millisecond, Max: 100 * time.Millisecond}

// wait tries until it has key, or ctx ends, or no majority has answered for a TTL.
func (l *Locker) wait(ctx context.Context, key string, left time.Duration) (*dlock.Lease, error) {
	answered := time.Now()
	prev := retry.Next(0)
	next := time.NewTimer(min(prev, left))
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, dlock.Ended(ctx)
		case <-next.C:
		}
		lease, left, err := l.try(ctx, key)
		switch {
		case err == nil:
			return lease, nil
		case errors.Is(err, dlock.ErrHeld):
			answered = time.Now()
		case ctx.Err() != nil || time.Since(answered) > l.cfg.TTL:
			return nil, err
		}
		prev = retry.Next(prev)
		next.Reset(min(prev, left))
	}
}
