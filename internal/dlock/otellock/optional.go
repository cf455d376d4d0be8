package otellock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/shop/internal/dlock"
)

// AcquireAll implements [dlock.MultiLocker].
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	next, ok := l.next.(dlock.MultiLocker)
	if !ok {
		return nil, l.unsupported("AcquireAll")
	}
	name := strings.Join(slices.Compact(slices.Sorted(slices.Values(keys))), ",")
	return l.measure(ctx, name, 0, func(ctx context.Context) (*dlock.Lease, error) { return next.AcquireAll(ctx, keys) })
}

// TryAcquireEach implements [dlock.EachLocker].
func (l *Locker) TryAcquireEach(ctx context.Context, keys []string) (*dlock.Lease, error) {
	next, ok := l.next.(dlock.EachLocker)
	if !ok {
		return nil, l.unsupported("TryAcquireEach")
	}
	return l.measure(ctx, "", len(keys), func(ctx context.Context) (*dlock.Lease, error) { return next.TryAcquireEach(ctx, keys) })
}

// Inspect implements [dlock.Inspector].
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	next, ok := l.next.(dlock.Inspector)
	if !ok {
		return dlock.State{}, l.unsupported("Inspect")
	}
	return next.Inspect(ctx, key)
}

// ForceRelease implements [dlock.ForceReleaser].
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	next, ok := l.next.(dlock.ForceReleaser)
	if !ok {
		return l.unsupported("ForceRelease")
	}
	return next.ForceRelease(ctx, key)
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
