package dlock

import (
	"context"
	"errors"
	"fmt"
)

// Fence identifies one grant of one key to the resource that the lock protects. The tokens of one key strictly
// increase from grant to grant, as long as the store keeps its data. The package comment of a backend describes a
// loss of data. The owner is unique per grant, because a store that lost data can issue a token twice.
type Fence struct {
	Token uint64
	Owner string
}

// Passes reports whether a resource that last accepted last may accept f: a
// newer grant, or the same one again. An equal token of another owner is refused.
func (f Fence) Passes(last Fence) bool { return f.Token > last.Token || f == last }

// Locker is a client of a lock service. It is safe for concurrent use.
type Locker interface {
	// Acquire takes key. It waits until key is free or ctx ends; nothing else bounds the wait. If ctx ended first, it
	// returns the error and the cause of ctx. If an attempt was sent and not answered, it returns [ErrUncertain] with
	// the reason. Otherwise it returns the store's refusal. After an error nothing is held, and the backend rolls an
	// unanswered attempt back in the background.
	Acquire(ctx context.Context, key string) (*Lease, error)

	// TryAcquire takes key if it is free. It makes one attempt and does not wait
	// for a holder. It returns [ErrHeld] if another owner has key, otherwise
	// the errors of Acquire, with the same guarantee.
	TryAcquire(ctx context.Context, key string) (*Lease, error)
}

// Do runs fn while it holds key, and releases it when fn returns, panics or
// calls runtime.Goexit. It blocks in l.Acquire until key is held or ctx ends; the
// release is bounded, and independent of ctx. The context given to fn is
// cancelled with the [*LostError] as its cause as soon as the lease is lost.
//
// Do returns what fn returned, with two rules for a lease that did not end well:
//
//   - fn failed and the lease was lost: the error also satisfies errors.Is(err,
//     [ErrLost]), even if fn saw only context.Canceled. The caller may retry the work
//     under a new lease.
//   - fn succeeded: Do returns nil, even if the lease or its release failed.
//     The work is done, and a resource that checks fencing tokens has
//     accepted it. An error here would make the caller repeat finished work;
//     the TTL frees the key in any case.
func Do(ctx context.Context, l Locker, key string, fn func(ctx context.Context, f Fence) error) (err error) {
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		return fmt.Errorf("dlock: acquire %q: %w", key, err)
	}
	defer func() {
		// A panic or Goexit runs this too, and then err is dropped.
		released := lease.Release(ctx)
		if err == nil || errors.Is(err, ErrLost) || !errors.Is(released, ErrLost) {
			return
		}
		err = fmt.Errorf("%w: %w", released, err)
	}()
	work, cancel := lease.Context(ctx)
	defer cancel()
	if work.Err() != nil {
		return context.Cause(work)
	}
	return fn(work, lease.Fence())
}
