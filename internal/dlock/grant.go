package dlock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Held is one key that a grant holds.
type Held struct {
	Key   string
	Fence Fence
	Kind  string // what of the key is held, if a backend has more than one kind; see [Grant.Kind]
	Turn  uint64 // see [Grant.Turn]
}

// Granted returns the fence by which the store knows the grant.
func (h Held) Granted() Fence {
	if h.Turn == 0 {
		return h.Fence
	}
	return Fence{Token: h.Fence.Token - h.Turn, Owner: h.Fence.Owner[:strings.LastIndexByte(h.Fence.Owner, '+')]}
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

	// Turn is how many leases of this process have had the grant before, if they share it. Fence is that of the turn,
	// see [Grant.OfTurn], and the store knows the first one.
	Turn uint64

	// Backend is the client that made the grant, a pointer. Contexts of the lease
	// carry it for [Reenter]. Nil: the grant takes no part in reentrancy.
	Backend any

	// NoReentry makes Reenter return ErrReentry instead of another lease.
	NoReentry bool

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

// Owner returns the owner by which the store knows Key.
func (g *Grant) Owner() string { return Held{Fence: g.Fence, Turn: g.Turn}.Granted().Owner }

// Held returns all keys of g, Key first.
func (g *Grant) Held() []Held {
	return append([]Held{{g.Key, g.Fence, g.Kind, g.Turn}}, g.Rest...)
}

// OfTurn returns the grant of a turn under g, which is that of turn 0. It has a fence of its own, and the whole of
// MaxHold.
func (g Grant) OfTurn(turn uint64) Grant {
	if turn == 0 {
		return g
	}
	g.Turn = turn
	g.Fence = Fence{Token: g.Fence.Token + turn, Owner: g.Fence.Owner + "+" + strconv.FormatUint(turn, 10)}
	if g.MaxHold > 0 {
		g.MaxHold += time.Since(g.Sent)
	}
	return g
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

// Kept returns the time at which the last request for the grant was sent that the store has acknowledged. It also returns
// how long the store keeps the grant since then. It returns the loss if one is known or the validity is over, also of a
// grant that is being released. It is for backends.
func (l *Lease) Kept() (since time.Time, keeps time.Duration, err error) {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if err = h.late; err == nil && !errors.Is(h.over, ErrReleased) {
		err = h.over
	}
	if err == nil && h.keeps > 0 && !time.Now().Before(validUntil(h.sent, h.keeps)) {
		err = h.g.lost(nil)
	}
	return h.sent, h.keeps, err
}
