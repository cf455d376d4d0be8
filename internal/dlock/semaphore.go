package dlock

import (
	"context"
	"errors"
)

// ErrInvalidPermits means that nobody can have that many permits: fewer than
// one, or more than the semaphore has. Waiting would not end.
var ErrInvalidPermits = errors.New("dlock: invalid number of permits")

// Semaphore is a client of a service that lets as many holders in as there are
// permits. Every key is a semaphore of its own, with the number of permits that
// the backend is configured with, unless it was resized ([Resizer]). A Semaphore
// is safe for concurrent use.
//
// A permit is held by a lease, as a lock is: kept alive while its holder lives,
// back within its TTL when the holder has died, and reported when it is lost.
// Permits are not reentrant: every call takes permits of its own, so a holder
// that asks for more while it holds some can wait for itself.
//
// The fences of one key strictly increase from grant to grant where the backend
// can order grants. With more than one permit that is an order of arrival and
// excludes nobody: an older holder is as entitled as a newer one, and a resource
// must not refuse it.
type Semaphore interface {
	// Acquire takes n permits of key, all or none. It waits until they are free or
	// ctx ends, which alone bounds the wait. It returns [ErrInvalidPermits] at once
	// when n can never be granted, and while it waits when a resize makes it so;
	// otherwise the errors of [Locker.Acquire]. After an error nothing is held, and
	// whatever an unanswered attempt may have taken is given back in the background.
	Acquire(ctx context.Context, key string, n int) (*Lease, error)

	// TryAcquire takes n permits of key if they are free and nobody waits for them.
	// It makes one attempt and does not wait for a holder. It returns [ErrHeld]
	// when they are not free, otherwise the errors of Acquire, with the same promise.
	TryAcquire(ctx context.Context, key string, n int) (*Lease, error)
}

// Resizer is a [Semaphore] that can change its number of permits while it is used.
type Resizer interface {
	// Resize gives key that many permits from now on, for every client of the
	// store. More permits go to those who wait, at once. Fewer take nothing from a
	// holder: nothing is granted until enough has been given back, and those who
	// wait for more than there will ever be fail with [ErrInvalidPermits]. It
	// returns that error when permits is less than one. After any other error the
	// number may have changed or not.
	Resize(ctx context.Context, key string, permits int) error
}

// Mutex makes a [Locker] of a semaphore with one permit. It refuses no other
// number, for it does not know it: with more permits it excludes nobody. It keeps
// what s promises about order and fences, and is not reentrant, as s is not.
func Mutex(s Semaphore) Locker { return mutex{s} }

type mutex struct{ s Semaphore }

// Acquire implements [Locker].
func (m mutex) Acquire(ctx context.Context, key string) (*Lease, error) {
	return m.s.Acquire(ctx, key, 1)
}

// TryAcquire implements [Locker].
func (m mutex) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return m.s.TryAcquire(ctx, key, 1)
}
