package dlocktest

import (
	"context"

	"example.com/shop/internal/dlock"
)

// RWPermits is how many permits a writer has, of a read/write lock that is used as
// a semaphore: all that a history takes. A reader has one.
const RWPermits = 2

// RWSemaphore is l in the shape of a semaphore, for a [Load] that takes one or
// [RWPermits]. It is none: readers have no limit.
func RWSemaphore(l dlock.RWLocker) dlock.Semaphore { return rwSemaphore{l} }

type rwSemaphore struct{ l dlock.RWLocker }

// Acquire implements [dlock.Semaphore].
func (s rwSemaphore) Acquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return side(s.l, n == RWPermits).Acquire(ctx, key)
}

// TryAcquire implements [dlock.Semaphore].
func (s rwSemaphore) TryAcquire(ctx context.Context, key string, n int) (*dlock.Lease, error) {
	return side(s.l, n == RWPermits).TryAcquire(ctx, key)
}
