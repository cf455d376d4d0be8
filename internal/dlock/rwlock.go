package dlock

import "context"

// RWLocker is a [Locker] whose keys any number of readers can share while no
// writer holds them. The methods of Locker are for writers.
//
// Readers and writers wait in one queue. A reader that arrives while a writer waits is queued, although only readers
// hold the key, and no writer passes a reader that came first. Neither side starves the other.
//
// A writer gets a new fencing token, greater than that of every earlier holder. A reader has a token of its own,
// greater than that of every earlier writer. It is no permission to write. A
// resource that checks it before a read refuses a reader whose lease expired before a newer writer. After a failover to
// older data, readers can have lower tokens, and be refused, until the next writer.
//
// There is no upgrade: a reader releases and then acquires as a writer. Two readers that
// waited to become the writer would wait for each other.
type RWLocker interface {
	Locker

	// AcquireRead takes a share of key. It waits until no writer holds key or
	// waits before this reader, or ctx ends. Its errors and guarantees
	// are those of Acquire.
	AcquireRead(ctx context.Context, key string) (*Lease, error)

	// TryAcquireRead takes a share of key if it is available at once. It returns
	// [ErrHeld] if a writer holds key or waits for it, otherwise the errors of
	// AcquireRead.
	TryAcquireRead(ctx context.Context, key string) (*Lease, error)
}
