package otellock

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
)

// TryAcquireEach implements [dlock.EachLocker].
func (l *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	next, ok := l.next.(dlock.EachLocker)
	if !ok {
		return nil, l.unsupported("TryAcquireEach")
	}
	return l.measure(ctx, "", len(keys), func(ctx context.Context) (*dlock.Lease, error) { return next.TryAcquireEach(ctx, keys) })
}

// RaiseCounter implements [dlock.CounterRaiser].
func (l *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	next, ok := l.next.(dlock.CounterRaiser)
	if !ok {
		return l.unsupported("RaiseCounter")
	}
	return next.RaiseCounter(ctx, key, atLeast)
}

func (l *Locker) unsupported(call string) error {
	return fmt.Errorf("otellock: %s by %T: %w", call, l.next, errors.ErrUnsupported)
}
