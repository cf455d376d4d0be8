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
	Kind  string // what of the key is held, where a backend has more than one kind; see [Grant.Kind]
}

// Grant is what a backend hands over after one successful acquisition.
type Grant struct {
	Key   string
	Fence Fence
	Sent  time.Time     // when the attempt that won was sent; the store granted later than that
	TTL   time.Duration // how long the store keeps the grant after a renewal; 0 if a session does

	// First is how long the store keeps the grant after Sent, before the first
	// renewal. 0 means TTL. A store that pushes a grant to a waiter which may be
	// dead keeps it for a shorter time.
	First time.Duration

	// MaxHold ends the lease that long after Sent, with [MaxHold] as the reason: a
	// holder that is stuck is not renewed for ever. 0 means no limit.
	MaxHold time.Duration

	// Rest are the further keys of a grant of several. They are renewed, lost and
	// released with Key.
	Rest []Held

	// Kind is passed on to the Renewer, for a backend that renews in several ways.
	Kind string

	// Backend is the client that made the grant, a pointer. Contexts of the lease
	// carry it for [Reenter]. Nil: the grant takes no part in reentrancy.
	Backend any

	// NoReentry makes Reenter return ErrReentry instead of another lease.
	NoReentry bool

	// Renewer keeps the grant alive together with others of the client, and ends it when
	// the store has announced its loss. Nil: it lasts for TTL, or for ever without one.
	Renewer Renewer

	// Release gives the grant back, with all of its keys. It changes nothing, and
	// returns ErrLost or a *LostError that says why, when the store has another owner or none.
	Release func(ctx context.Context) error

	// Ended is called once when the grant is over, after the store was asked to take it
	// back, with the outcome that [Lease.OnEnd] of its last lease gets: a holder that
	// entered again has several leases, and the end of one is not that of the grant. It
	// must not block, and may be nil.
	Ended func(outcome error)

	// Abandon is called once when the grant is lost, after its leases have been told:
	// for a store that keeps a grant for as long as a session lives, and has to hear
	// that nobody wants it any more. It must not block, and may be nil.
	Abandon func()
}

// Renewer keeps the grants of a client alive. Package driver has one.
type Renewer interface {
	// Keep begins to renew the grant of h, with values from ctx, which never ends. It
	// returns false when the client was closed.
	Keep(ctx context.Context, h *Hold) bool

	// Forget ends the renewals of h. It returns nil, or a channel that is closed when the
	// renewal in flight has ended.
	Forget(h *Hold) (landed <-chan struct{})
}

// Held returns all keys of g, Key first.
func (g *Grant) Held() []Held {
	return append([]Held{{g.Key, g.Fence, g.Kind}}, g.Rest...)
}

// FirstWindow is for how long the store keeps g after Sent.
func (g *Grant) FirstWindow() time.Duration {
	if g.First > 0 {
		return min(g.First, g.TTL)
	}
	return g.TTL
}

// lost completes what a backend reports about g, which may be a bare ErrLost.
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
