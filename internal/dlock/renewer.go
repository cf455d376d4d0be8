package dlock

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// RenewerConfig is the configuration of a [Renewer].
type RenewerConfig struct {
	// TTL is that of the grants.
	TTL time.Duration

	// Keeps returns for how long the store keeps a grant that was renewed just now, if the
	// store can change that: 0 or more than TTL count as TTL. It must not block. Nil: TTL.
	Keeps func() time.Duration

	// Chunk is how many keys one call of Renew gets. 0 means 100.
	Chunk int

	// Renew renews all of held for one TTL in one go, and returns one verdict for
	// each, in order: nil when it is renewed; [ErrLost], or a [*LostError] that says
	// why, when the store has another owner or none; any other error when the
	// attempt failed, which is repeated. It never takes a grant again that is gone,
	// and returns soon after ctx has ended. A bare ctx.Err() for all is a fine verdict.
	Renew func(ctx context.Context, held []Held) []error
}

// Renewer keeps the grants of one client alive, many of them per call to the
// store. It renews each grant every third of its TTL, and those that are due at
// about the same time together. Calls run beside one another, so that one that
// fails or hangs delays no other; a failed one is repeated about ten times per
// TTL, not in step with others. Whether a lease is still trusted does not depend
// on any of this: that is a timer of each lease.
//
// A Renewer has one timer while it has grants, and one goroutine for each call
// in flight.
type Renewer struct {
	cfg RenewerConfig

	mu     sync.Mutex
	holds  map[*hold]struct{}
	owners map[string]*hold
	timer  *time.Timer // nil if there is no grant
	next   time.Time   // when timer fires
	closed bool
}

// renewal is the part of a hold that belongs to its Renewer.
type renewal struct {
	due    time.Time
	window time.Duration // of trust, as it stands
	flight *flight       // nil if none
}

// flight is one call of Renew.
type flight struct {
	holds  []*hold
	held   []Held
	left   int // holds that still want to know
	cancel context.CancelFunc
	landed chan struct{} // closed when Renew has returned
}

// NewRenewer returns a Renewer without grants. Backends put it in [Grant.Renewer].
func NewRenewer(cfg RenewerConfig) *Renewer {
	cfg.Chunk = cmp.Or(cfg.Chunk, 100)
	return &Renewer{cfg: cfg, holds: map[*hold]struct{}{}, owners: map[string]*hold{}}
}

// Lose ends the lease of the grant whose fence has owner, if there is one, as
// lost: for a backend that is told of a loss between two renewals. Without a
// reason in err it is Expired.
func (r *Renewer) Lose(owner string, err error) {
	r.mu.Lock()
	h := r.owners[owner]
	r.mu.Unlock()
	if h != nil {
		h.lose(err)
	}
}

// add reports false if r is closed.
func (r *Renewer) add(h *hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.holds[h] = struct{}{}
	r.owners[h.g.Fence.Owner] = h
	for _, other := range h.g.Rest {
		r.owners[other.Fence.Owner] = h
	}
	h.state.window = h.g.first()
	h.state.due = h.g.Sent.Add(h.state.window / 3)
	r.wake(h.state.due)
	return true
}

// remove ends the renewals of h, and returns the one in flight, or nil.
func (r *Renewer) remove(h *hold) *flight {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.holds[h]; !ok {
		return h.state.flight
	}
	delete(r.holds, h)
	delete(r.owners, h.g.Fence.Owner)
	for _, other := range h.g.Rest {
		delete(r.owners, other.Fence.Owner)
	}
	if len(r.holds) == 0 && r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	f := h.state.flight
	if f != nil {
		if f.left--; f.left == 0 {
			f.cancel()
		}
	}
	return f
}

// wake makes the timer fire at t at the latest. It is called under mu.
func (r *Renewer) wake(t time.Time) {
	switch {
	case r.timer == nil:
		r.timer = time.AfterFunc(time.Until(t), r.pass)
	case t.Before(r.next):
		r.timer.Reset(time.Until(t))
	default:
		return
	}
	r.next = t
}

// pass sends off all that is due.
func (r *Renewer) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil {
		return
	}
	soon := time.Now().Add(r.cfg.TTL / 30)
	var f *flight
	send := func() {
		if f != nil {
			r.send(f)
		}
		f = &flight{landed: make(chan struct{})}
	}
	for h := range r.holds {
		if h.state.flight != nil || h.state.due.After(soon) {
			continue
		}
		if f == nil || len(f.held)+1+len(h.g.Rest) > r.cfg.Chunk && len(f.held) > 0 {
			send()
		}
		f.holds = append(f.holds, h)
		f.held = append(f.held, h.g.held()...)
		h.state.flight = f
	}
	if f != nil {
		r.send(f)
	}
	r.reschedule()
}

// reschedule sets the timer to the first grant that is due. It is called under mu.
func (r *Renewer) reschedule() {
	if r.timer == nil {
		return
	}
	r.next = time.Now().Add(r.cfg.TTL)
	for h := range r.holds {
		if h.state.flight == nil && h.state.due.Before(r.next) {
			r.next = h.state.due
		}
	}
	r.timer.Reset(time.Until(r.next))
}

// send is called under mu.
func (r *Renewer) send(f *flight) {
	window := r.cfg.TTL
	for _, h := range f.holds {
		window = min(window, h.state.window)
	}
	// An attempt that gets no answer leaves room for others.
	ctx, cancel := context.WithTimeout(f.holds[0].values, window/6)
	f.cancel, f.left = cancel, len(f.holds)
	go r.fly(ctx, f)
}

func (r *Renewer) fly(ctx context.Context, f *flight) {
	defer close(f.landed)
	defer f.cancel()
	sent := time.Now()
	errs := r.cfg.Renew(ctx, f.held)
	verdicts := make([]error, len(f.holds))
	at := 0
	for i, h := range f.holds {
		n := 1 + len(h.g.Rest)
		verdicts[i] = worst(errs, at, at+n)
		at += n
	}
	window := r.window()
	r.land(f, sent, window, verdicts)
	for i, h := range f.holds {
		switch {
		case verdicts[i] == nil:
			h.trust(sent, window)
		case errors.Is(verdicts[i], ErrLost):
			h.lose(verdicts[i])
		}
	}
}

// window is how long the store keeps what was renewed.
func (r *Renewer) window() time.Duration {
	if r.cfg.Keeps == nil {
		return r.cfg.TTL
	}
	return min(r.cfg.TTL, cmp.Or(r.cfg.Keeps(), r.cfg.TTL))
}

// land says when each grant is due again.
func (r *Renewer) land(f *flight, sent time.Time, window time.Duration, verdicts []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, h := range f.holds {
		h.state.flight = nil
		if verdicts[i] == nil {
			h.state.window = window
			h.state.due = sent.Add(window / 3)
			continue
		}
		pause := h.state.window / 20
		h.state.due = time.Now().Add(pause + rand.N(pause+1))
	}
	r.reschedule()
}
