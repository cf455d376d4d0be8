package dlock

import (
	"context"
	"time"
)

// MultiLocker is a [Locker] that takes several keys as one.
type MultiLocker interface {
	// AcquireAll takes all of keys, or none. It sorts them and drops
	// duplicates, so that two callers cannot wait for each other. It waits and
	// fails as Acquire does. The lease has a fencing token for each key. If one key is lost,
	// the lease is lost.
	AcquireAll(ctx context.Context, keys []string) (*Lease, error)
}

// EachLocker is a [Locker] that takes several keys at once, each by itself.
type EachLocker interface {
	// TryAcquireEach takes those of keys that are free. It makes one attempt for each, in one round trip if the store
	// can, and waits for no holder. The lease has the keys that were granted ([Lease.Keys]), in the order of their bytes
	// and without duplicates, and a fencing token for each ([Lease.FenceOf]). If one key is lost, the lease is lost. The
	// lease is nil if no key was granted.
	//
	// The error is nil if each key was granted or has another owner, so a nil lease and a nil error say that all are held.
	// Otherwise the error is the refusal of the store or [ErrUncertain], as that of TryAcquire, about at least one key
	// that is not in the lease. The lease is valid all the same. An unanswered attempt is rolled back in the background.
	// A holder of some of keys gets [ErrReentry] and nothing else; see [Reenter].
	TryAcquireEach(ctx context.Context, keys []string) (*Lease, error)
}

// State is the state of a key in its store. It is stale when it arrives.
type State struct {
	Key     string
	Held    bool
	Fence   Fence         // of the holder
	Since   time.Time     // when the holder was granted the key, by the clock of the store
	TTL     time.Duration // how long the store keeps the holder without a renewal
	Waiters int           // in the queue, where the store has one
}

// Inspector is a [Locker] that reports the holder of a key.
type Inspector interface {
	// Inspect returns the state of key. A free key is no error.
	Inspect(ctx context.Context, key string) (State, error)
}

// ForceReleaser is a [Locker] that can release keys from their holders.
type ForceReleaser interface {
	// ForceRelease frees key, whoever holds it; the first waiter gets it. The lease
	// of the holder ends with the reason [Forced] when the store notifies it, at the
	// latest at its next renewal. Until then, only the fencing token keeps its writes out.
	// A free key is no error.
	ForceRelease(ctx context.Context, key string) error
}

// CounterRaiser is a [Locker] whose fencing tokens can be raised from outside.
type CounterRaiser interface {
	// RaiseCounter makes every later token of key greater than atLeast, and lowers
	// nothing. Use it if a resource refuses the fencing tokens of a store that has
	// lost its data and whose clock is behind the former store's. Redis forgets it when key
	// was not taken for a day.
	RaiseCounter(ctx context.Context, key string, atLeast uint64) error
}
