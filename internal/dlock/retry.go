package dlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff spreads attempts over time with decorrelated jitter: each pause is
// random between Min and three times the pause before, and at most Max. The
// first one is short, so that a key that is about to be free changes hands
// quickly; many waiters soon spread out. (M. Brooker, "Exponential Backoff And
// Jitter", 2015.)
type Backoff struct {
	Min time.Duration // shortest pause; 0 means 1 ms
	Max time.Duration // longest pause; 0 means 50 ms
}

// Next returns the pause after one of prev, which is 0 before the first one.
func (b Backoff) Next(prev time.Duration) time.Duration {
	low := cmp.Or(b.Min, time.Millisecond)
	high := max(low, cmp.Or(b.Max, 50*time.Millisecond))
	prev = max(prev, low)
	return min(high, low+rand.N(3*prev-low+1))
}

// Poll repeats try until it returns anything but [ErrHeld], or ctx ends. It is
// how a backend without a queue waits. When ctx ends the error matches both
// ctx.Err() and the cause.
func Poll(ctx context.Context, b Backoff, try func(context.Context) (*Lease, error)) (*Lease, error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for prev := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil, Ended(ctx)
		case <-pause.C:
		}
		if ctx.Err() != nil { // both were ready
			return nil, Ended(ctx)
		}
		lease, err := try(ctx)
		if !errors.Is(err, ErrHeld) {
			return lease, err
		}
		prev = b.Next(prev)
		pause.Reset(prev)
	}
}

// Ended returns the error of an ended ctx together with its cause, and matches both. The
// cause is whatever somebody has cancelled ctx for. It may well be how another acquisition
// ended, which says nothing of this one: [ErrHeld], [ErrUncertain], [ErrReentry] and
// [ErrInvalidPermits] in the cause are not matched. A backend that classifies what its
// store has said does so before it adds Ended: a cause can look like an answer.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return &ended{err, cause}
}

// ended is the end of a context.
type ended struct{ err, cause error }

// Error implements error.
func (e *ended) Error() string { return fmt.Sprintf("%v: %v", e.err, e.cause) }

// Unwrap returns the error of the context.
func (e *ended) Unwrap() error { return e.err }

// Is matches the cause, but for outcomes of an acquisition.
func (e *ended) Is(target error) bool {
	switch target {
	case ErrHeld, ErrUncertain, ErrReentry, ErrInvalidPermits:
		return false
	}
	return errors.Is(e.cause, target)
}

// As finds a type in the cause.
func (e *ended) As(target any) bool { return errors.As(e.cause, target) }
