package dlock

import (
	"context"
	"errors"
)

// ErrInvalidPermits means that the number of permits can never be granted: fewer than
// one, or more than the semaphore has.
var ErrInvalidPermits = errors.New("dlock: invalid number of permits")

// Semaphore is a client of a service that grants a limited number of permits per key. Every key is a semaphore of its
// own, with the number of permits of the backend's configuration, unless it was resized ([Resizer]). A Semaphore is
// safe for concurrent use.
//
// A permit is held by a lease, like a lock. It is kept alive while its holder lives, is free within its TTL after the
// holder has died, and a loss is reported. Permits are not reentrant: every call takes permits of its own, so a
// holder that acquires more while it holds some can wait for itself.
//
// The fencing tokens of one key strictly increase from grant to grant where the backend can order grants. With more
// than one permit, they are an order of arrival and exclude no holder. An older holder is as valid as a newer one,
// and a resource must not refuse it.
type Semaphore interface {
	// Acquire takes n permits of key, all or none. It waits until they are free or ctx ends; nothing else bounds the
	// wait. It returns [ErrInvalidPermits] at once if n can never be granted, and during the wait if a resize makes
	// it so. Otherwise it returns the errors of [Locker.Acquire]. After an error nothing is held, and the backend
	// rolls an unanswered attempt back in the background.
	Acquire(ctx context.Context, key string, n int) (*Lease, error)

	// TryAcquire takes n permits of key if they are free and no caller waits for them.
	// It makes one attempt and does not wait for a holder. It returns [ErrHeld]
	// if they are not free, otherwise the errors of Acquire, with the same guarantee.
	TryAcquire(ctx context.Context, key string, n int) (*Lease, error)
}

// Resizer is a [Semaphore] whose number of permits can change at any time.
type Resizer interface {
	// Resize sets the number of permits of key, for every client of the store. Additional permits go to waiters at
	// once. Fewer permits take nothing from a holder: nothing is granted until enough permits have been released.
	// Waiters for more permits than the new number fail with [ErrInvalidPermits]. Resize returns that error if
	// permits is less than one. After any other error, the number may or may not have changed.
	Resize(ctx context.Context, key string, permits int) error
}
