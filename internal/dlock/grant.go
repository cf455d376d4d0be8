package dlock

import (
	"context"
	"errors"
	"time"
)

// Held is one key that a grant holds.
type Held struct {
	Key   string
	Fence Fence
	Kind  string // what of the key is held, if a backend has more than one kind; see [Grant.Kind]
}

// Grant is the result of a successful acquisition by a backend.
type Grant struct {
	Key   string
	Fence Fence
	Sent  time.Time     // when the successful attempt was sent; the store granted the key later
	TTL   time.Duration // how long the store keeps the grant after a renewal; 0 if a session does

	// First is how long the store keeps the grant after Sent, before the first
	// renewal. 0 means TTL. A store keeps a grant for a waiter that may be
	// dead for a shorter time.
	First time.Duration

	// MaxHold ends the lease that long after Sent, with [MaxHold] as the reason, so that a
	// stuck holder is not renewed forever. 0 means no limit.
	MaxHold time.Duration

	// Rest are the further keys of a grant of several. They are renewed, lost and
	// released with Key.
	Rest []Held

	// Kind is passed to the Renewer, for a backend that renews in several ways.
	Kind string

	// Backend is the client that made the grant, a pointer. Contexts of the lease
	// carry it for [Reenter]. Nil: the grant takes no part in reentrancy.
	Backend any

	// Renewer keeps the grants of the client alive, and ends a grant when
	// the store reports its loss. Nil: the grant lasts for TTL, or forever without a TTL.
	Renewer Renewer

	// Release releases the grant, with all of its keys. If the store has another owner or none, it changes nothing
	// and returns ErrLost or a *LostError with the reason.
	Release func(ctx context.Context) error

	// Ended is called once at the end of the grant, after the release was sent or put off, with
	// the outcome that [Lease.OnEnd] of its last lease gets. A reentrant
	// holder has several leases; the grant ends with the last one. Ended
	// must not block, and may be nil.
	Ended func(outcome error)

	// Abandon is called once when the grant is lost, after its leases have been notified. It is for
	// a store that keeps a grant for the life of a session, and needs a request
	// to drop it. It must not block, and may be nil.
	Abandon func()
}

// Renewer keeps the grants of a client alive. Package driver has one.
type Renewer interface {
	// Keep starts the renewals of h, with the values of ctx, which never ends. It
	// returns false if the client was closed.
	Keep(ctx context.Context, h *Hold) bool

	// Forget ends the renewals of h. It returns nil, or a channel that is closed when the
	// renewal in flight has ended.
	Forget(h *Hold) (landed <-chan struct{})
}

// Held returns all keys of g, Key first.
func (g *Grant) Held() []Held {
	return append([]Held{{g.Key, g.Fence, g.Kind}}, g.Rest...)
}

// FirstWindow returns how long the store keeps g after Sent.
func (g *Grant) FirstWindow() time.Duration {
	if g.First > 0 {
		return min(g.First, g.TTL)
	}
	return g.TTL
}

// lost completes the error of a backend about g, which may be a bare ErrLost.
func (g *Grant) lost(err error) *LostError {
	e := &LostError{Key: g.Key, Fence: g.Fence, Reason: Expired}
	if known, ok := errors.AsType[*LostError](err); ok && known.Reason != "" {
		e.Reason = known.Reason
		for _, other := range g.Rest {
			if other.Key == known.Key {
				e.Key, e.Fence = other.Key, other.Fence
			}
		}
	}
	return e
}
