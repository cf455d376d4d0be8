package dlock_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
)

// textbookRW makes a read/write lock of a Locker and a Semaphore with readers permits per key, as textbooks do. A
// reader takes one permit. A writer takes the lock, which keeps other writers out, and then all permits, which keeps
// readers out. It works on any backend, and on two different ones, and it is here to learn from. semlock.RWMutex and the
// read/write locks of the backends do better:
//
//   - A writer pays two acquisitions and two releases, and holds two leases, of which it can lose either. A semaphore
//     without weights would make it N+1. Without the lock, two writers that collect permits one by one would wait for
//     each other.
//   - At most N readers share a key, for a number N that every process must agree on.
//   - It is as fair as the semaphore. If that grants first come, first served, a writer that waits for all permits
//     stops later readers. Readers that arrive while it writes go before the next writer. If the semaphore grants in
//     any order, readers starve writers.
//   - A writer has the fencing token of the lock, a reader that of its permit. They come from two sequences and must
//     not be compared: a resource that is to refuse overtaken readers needs another lock.
//
// Its lease is lost when either part is lost, with the reason of that part. Then the other part is released.
type textbookRW struct {
	lock    dlock.Locker
	permits dlock.Semaphore
	readers int
}

// AcquireRead implements [dlock.RWLocker].
func (rw textbookRW) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return rw.permits.Acquire(ctx, key, 1)
}

// TryAcquireRead implements [dlock.RWLocker].
func (rw textbookRW) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return rw.permits.TryAcquire(ctx, key, 1)
}

// Acquire implements [dlock.Locker].
func (rw textbookRW) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return rw.write(ctx, key, rw.lock.Acquire, rw.permits.Acquire)
}

// TryAcquire implements [dlock.Locker].
func (rw textbookRW) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return rw.write(ctx, key, rw.lock.TryAcquire, rw.permits.TryAcquire)
}

func (rw textbookRW) write(
	ctx context.Context, key string,
	lock func(context.Context, string) (*dlock.Lease, error),
	permits func(context.Context, string, int) (*dlock.Lease, error),
) (*dlock.Lease, error) {
	alone, err := lock(ctx, key)
	if err != nil {
		return nil, err
	}
	// A writer that loses the lock while it waits for readers must not wait on.
	held, stop := alone.Context(ctx)
	defer stop()
	all, err := permits(held, key, rw.readers)
	if err != nil {
		// The caller gets the reason; the TTL frees what this does not.
		_ = alone.Release(ctx)
		return nil, fmt.Errorf("dlock: readers of %q: %w", key, err)
	}
	return compose(ctx, alone, all), nil
}

// compose returns one lease for two, with the key and the fencing token of the first. It
// is lost when either is. A release releases the second first. The parts renew
// themselves.
func compose(ctx context.Context, first, second *dlock.Lease) *dlock.Lease {
	release := func(ctx context.Context) error {
		return errors.Join(second.Release(ctx), first.Release(ctx))
	}
	whole := dlock.NewLease(ctx, dlock.Grant{Key: first.Key(), Fence: first.Fence(), Renewer: either{first, second}, Release: release})
	whole.OnEnd(func(outcome error) {
		if errors.Is(outcome, dlock.ErrLost) {
			// Without this, the rest of it would be kept alive for ever. The goroutine ends with the releases, which
			// are bounded; nobody waits for it, as nobody waits for a loss.
			go func() { _ = release(context.WithoutCancel(ctx)) }()
		}
	})
	return whole
}

// either is the Renewer of a lease that is lost with the first of these leases, which renew
// themselves.
type either []*dlock.Lease

// Keep implements [dlock.Renewer].
func (e either) Keep(_ context.Context, whole *dlock.Hold) bool {
	for _, part := range e {
		part.OnEnd(func(outcome error) {
			if errors.Is(outcome, dlock.ErrLost) {
				whole.Lose(outcome)
			}
		})
	}
	return true
}

// Forget implements [dlock.Renewer].
func (either) Forget(*dlock.Hold) <-chan struct{} { return nil }
