package dlocktest

import (
	"context"
	"sync/atomic"

	"example.com/shop/internal/dlock"
)

// Faulty is a [dlock.Locker] that fails as a test wants. The tests of what uses a lock have their faults from it.
type Faulty struct {
	// Locker takes the calls that do not fail. Nil: all fail.
	dlock.Locker

	// Fail returns the error of the next call. Nil: none fails.
	Fail func() error

	// Calls counts the calls.
	Calls atomic.Int64
}

// Fails returns a Locker whose calls fail with err.
func Fails(err error) *Faulty { return &Faulty{Fail: func() error { return err }} }

// Acquire implements [dlock.Locker].
func (f *Faulty) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	return f.Locker.Acquire(ctx, key)
}

// TryAcquire implements [dlock.Locker].
func (f *Faulty) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	return f.Locker.TryAcquire(ctx, key)
}

func (f *Faulty) failure() error {
	f.Calls.Add(1)
	if f.Fail == nil {
		return nil
	}
	return f.Fail()
}
