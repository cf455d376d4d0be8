package dlock

import "context"

// RWLocker is a [Locker] whose keys any number of readers can share while no
// writer holds them. The methods of Locker are for writers.
//
// A fair RWLocker is phase-fair (B. Brandenburg and J. Anderson, "Spin-Based
// Reader-Writer Synchronization for Multiprocessor Real-Time Systems", 2010):
// phases of readers and single writers alternate while both wait. A reader that
// arrives while a writer waits is queued, although only readers hold the key. When a
// writer releases, all waiting readers are granted the key before the next writer.
// So a reader waits for at most one writer, and a writer for one phase of readers and
// the previous writers. Neither side starves the other.
//
// A writer gets a new fencing token. Readers share the current token: the token of the last
// writer, or one of the first reader if the store knows no writer or that writer expired. A reader's token is
// no permission to write. A resource that checks it before a read refuses a reader whose lease expired
// before a newer writer. Readers before and after a loss of data, without a writer in between, can have
// different tokens. After a failover to older data those can be lower, and refused, until the next writer.
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
