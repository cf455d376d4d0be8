package dlock

import "context"

// RWLocker is a [Locker] whose keys any number of readers can share while no
// writer holds them. The methods of Locker are the writer's.
//
// A fair RWLocker is phase-fair (B. Brandenburg and J. Anderson, "Spin-Based
// Reader-Writer Synchronization for Multiprocessor Real-Time Systems", 2010):
// phases of readers and single writers alternate while both wait. A reader that
// comes while a writer waits queues, although only readers hold the key. When a
// writer releases, all readers that wait by then get in, before the next writer.
// So a reader waits for one writer at most, a writer for one phase of readers and
// the writers before it, and neither side starves the other.
//
// A writer gets a new fence. Readers share the current one, that of the last
// writer, or one that the first reader begins if the store knows of no writer. It
// says what a reader may have seen and is no permission to write: a resource that
// checks it before a read refuses a reader whose lease lapsed and that a writer has
// overtaken, and takes nothing else from it. Readers on both sides of a loss of
// data, but of no writer, can have different fences.
//
// A reader that wants to write releases first and acquires again: two readers that
// wait to become the writer would wait for each other.
type RWLocker interface {
	Locker

	// AcquireRead takes a share of key. It waits until no writer holds key or is
	// waiting before this reader, or ctx ends. Its errors, and what is still true
	// after one, are those of Acquire.
	AcquireRead(ctx context.Context, key string) (*Lease, error)

	// TryAcquireRead takes a share of key if it can have it at once. It returns
	// [ErrHeld] when a writer holds key or waits for it, otherwise the errors of
	// AcquireRead.
	TryAcquireRead(ctx context.Context, key string) (*Lease, error)
}
