package dlock

import (
	"context"
	"time"
)

// MultiLocker is a [Locker] that takes several keys as one.
type MultiLocker interface {
	// AcquireAll takes all of keys, or none. It sorts them and leaves out
	// repetitions, so that two callers cannot wait for one another, and waits and
	// fails as Acquire does. The lease has a fence for each key; if one key is lost
	// the lease is lost.
	AcquireAll(ctx context.Context, keys []string) (*Lease, error)
}

// State is what a store knows about a key. It is out of date when it arrives.
type State struct {
	Key     string
	Held    bool
	Fence   Fence         // of the holder
	Since   time.Time     // when the holder was granted the key, by the clock of the store
	TTL     time.Duration // how long the store keeps the holder without a renewal
	Waiters int           // in the queue, where the store has one
}

// Inspector is a [Locker] that can tell who holds a key.
type Inspector interface {
	// Inspect returns the state of key. A key that nobody holds is no error.
	Inspect(ctx context.Context, key string) (State, error)
}

// ForceReleaser is a [Locker] whose keys can be taken from their holders.
type ForceReleaser interface {
	// ForceRelease frees key, whoever holds it; the first waiter gets it. The lease
	// of the holder ends with the reason [Forced] when the store reaches it, at the
	// latest at its next renewal. Until then only the fence keeps its writes out.
	// It is no error if nobody holds key.
	ForceRelease(ctx context.Context, key string) error
}

// Reseeder is a [Locker] whose fences can be raised from outside.
type Reseeder interface {
	// Reseed makes every later token of key greater than atLeast, and lowers
	// nothing. It is for a resource that refuses the fences of a store that has
	// lost its data and whose clock is behind that of the store before.
	Reseed(ctx context.Context, key string, atLeast uint64) error
}
