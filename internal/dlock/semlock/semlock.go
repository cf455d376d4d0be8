// Package semlock makes locks of a semaphore.
package semlock

import (
	"context"

	"example.com/shop/internal/dlock"
)

// Mutex returns a [dlock.Locker] on a semaphore with one permit. It cannot check the
// number: with more permits there is no mutual exclusion. It has
// the guarantees of s about order and fencing tokens, and, like s, is not reentrant.
func Mutex(s dlock.Semaphore) dlock.Locker { return mutex{s, 1} }

// mutex is an owner that takes all permits.
type mutex struct {
	s       dlock.Semaphore
	permits int
}

// Acquire implements [dlock.Locker].
func (m mutex) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return m.s.Acquire(ctx, key, m.permits)
}

// TryAcquire implements [dlock.Locker].
func (m mutex) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return m.s.TryAcquire(ctx, key, m.permits)
}

// RWMutex returns an [dlock.RWLocker] on a semaphore. A reader takes one permit of a key, and a writer takes all of them, so
// at most as many readers as permits share a key. It cannot check the number: with more permits in s, a writer is not
// alone.
//
// The semaphore must grant all permits of a caller at once, and first come, first served. Otherwise two writers that
// collect permits wait for each other, and readers starve writers; then put a mutex in front of the writers. RWMutex has
// the guarantees of s about fencing tokens: if they increase from grant to grant, those of writers do. Like s, it is
// not reentrant.
func RWMutex(s dlock.Semaphore, permits int) dlock.RWLocker { return rwMutex{mutex{s, permits}} }

type rwMutex struct{ mutex }

// AcquireRead implements [dlock.RWLocker].
func (m rwMutex) AcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return m.s.Acquire(ctx, key, 1)
}

// TryAcquireRead implements [dlock.RWLocker].
func (m rwMutex) TryAcquireRead(ctx context.Context, key string) (*dlock.Lease, error) {
	return m.s.TryAcquire(ctx, key, 1)
}
