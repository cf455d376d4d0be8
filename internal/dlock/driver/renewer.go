package driver

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/dlock"
)

// RenewerConfig is the configuration of a [Renewer].
type RenewerConfig struct {
	// TTL is that of the grants.
	TTL time.Duration

	// Keeps returns how long the store keeps a grant that was just renewed, if the store can change that. 0 or more
	// than TTL count as TTL. It must not block. Nil: TTL.
	Keeps func() time.Duration

	// Chunk is how many keys one call of Renew gets. 0 means 100.
	Chunk int

	// Renew renews all of held for one TTL in one call, and returns one verdict for each, in order. Nil means that the
	// grant was renewed. [dlock.ErrLost], or a [*dlock.LostError] with the reason, means that the store has another
	// owner or none. Any other error means that the attempt failed; it is repeated. Renew never takes a lost grant
	// again, and returns soon after ctx has ended. ctx.Err() for all grants is a valid result.
	Renew func(ctx context.Context, held []dlock.Held) []error
}

// Renewer keeps the grants of one client alive, many of them per call to the store. It renews each grant every third
// of its TTL, and grants that are due at about the same time together. Calls run concurrently, so a call that fails
// or hangs delays no other call. A failed call is repeated about ten times per TTL, with jitter. The validity of a
// lease depends on none of this: each lease has its own timer.
//
// A Renewer has one timer while it has grants, and one goroutine for each call in flight.
type Renewer struct {
	cfg RenewerConfig

	mu     sync.Mutex
	kept   map[*dlock.Hold]*renewal
	owners map[string]*dlock.Hold
	timer  *time.Timer // nil if there is no grant
	next   time.Time   // when timer fires
	closed bool
}

// renewal is what a Renewer knows of a grant.
type renewal struct {
	hold   *dlock.Hold
	values context.Context //nolint:containedctx // Never done: the values that renewals run with.
	due    time.Time
	window time.Duration // the current validity window
	flight *flight       // nil if none
}

// flight is one call of Renew.
type flight struct {
	kept   []*renewal
	held   []dlock.Held
	left   int // grants that still want to know
	cancel context.CancelFunc
	landed chan struct{} // closed when Renew has returned
}

// NewRenewer returns a Renewer without grants. Backends put it in [dlock.Grant.Renewer].
func NewRenewer(cfg RenewerConfig) *Renewer {
	cfg.Chunk = cmp.Or(cfg.Chunk, 100)
	if cfg.Keeps == nil {
		cfg.Keeps = func() time.Duration { return cfg.TTL }
	}
	return &Renewer{cfg: cfg, kept: map[*dlock.Hold]*renewal{}, owners: map[string]*dlock.Hold{}}
}

// Lose ends the lease of the grant whose fencing token has owner, if there is one, as lost. It is for a backend that
// is notified of a loss between two renewals. Without a reason in err, the reason is Expired. Without a key, the key is that of owner.
func (r *Renewer) Lose(owner string, err error) {
	r.mu.Lock()
	h := r.owners[owner]
	r.mu.Unlock()
	if h == nil {
		return
	}
	if lost, ok := errors.AsType[*dlock.LostError](err); ok && lost.Key == "" {
		for _, held := range h.Grant().Held() { // one of several keys
			if held.Fence.Owner == owner {
				err = &dlock.LostError{Key: held.Key, Fence: held.Fence, Reason: lost.Reason}
			}
		}
	}
	h.Lose(err)
}

// Keep implements [dlock.Renewer].
func (r *Renewer) Keep(ctx context.Context, h *dlock.Hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	g := h.Grant()
	for _, held := range g.Held() {
		r.owners[held.Fence.Owner] = h
	}
	window := g.FirstWindow()
	k := &renewal{hold: h, values: ctx, window: window, due: g.Sent.Add(window / 3)}
	r.kept[h] = k
	r.wake(k.due)
	return true
}

// Forget implements [dlock.Renewer].
func (r *Renewer) Forget(h *dlock.Hold) (landed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kept[h]
	if k == nil {
		return nil
	}
	delete(r.kept, h)
	for _, held := range h.Grant().Held() {
		delete(r.owners, held.Fence.Owner)
	}
	if len(r.kept) == 0 && r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	f := k.flight
	if f == nil {
		return nil
	}
	if f.left--; f.left == 0 {
		f.cancel()
	}
	return f.landed
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
	var flights []*flight
	var f *flight
	for h, k := range r.kept {
		if k.flight != nil || k.due.After(soon) {
			continue
		}
		held := h.Grant().Held()
		if f == nil || len(f.held)+len(held) > r.cfg.Chunk {
			f = &flight{landed: make(chan struct{})}
			flights = append(flights, f)
		}
		f.kept, f.held = append(f.kept, k), append(f.held, held...)
		k.flight = f
	}
	for _, f := range flights {
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
	for _, k := range r.kept {
		if k.flight == nil && k.due.Before(r.next) {
			r.next = k.due
		}
	}
	r.timer.Reset(time.Until(r.next))
}

// send is called under mu.
func (r *Renewer) send(f *flight) {
	window := r.cfg.TTL
	for _, k := range f.kept {
		window = min(window, k.window)
	}
	// An attempt that gets no answer leaves room for others.
	ctx, cancel := context.WithTimeout(f.kept[0].values, window/6)
	f.cancel, f.left = cancel, len(f.kept)
	go r.fly(ctx, f)
}

func (r *Renewer) fly(ctx context.Context, f *flight) {
	defer close(f.landed)
	defer f.cancel()
	sent := time.Now()
	errs := r.cfg.Renew(ctx, f.held)
	window := min(r.cfg.TTL, cmp.Or(r.cfg.Keeps(), r.cfg.TTL)) // how long the store keeps what was renewed
	for _, k := range f.kept {
		n := 1 + len(k.hold.Grant().Rest)
		err := errNoVerdict
		if n <= len(errs) {
			err = worst(errs[:n])
			errs = errs[n:]
		}
		switch {
		case err == nil:
			k.hold.Renewed(sent, window)
		case errors.Is(err, dlock.ErrLost):
			k.hold.Lose(err)
		}
		r.land(k, sent, window, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reschedule()
}

// land says when a grant is due again.
func (r *Renewer) land(k *renewal, sent time.Time, window time.Duration, verdict error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.flight = nil
	if verdict == nil {
		k.window, k.due = window, sent.Add(window/3)
		return
	}
	pause := k.window / 20
	k.due = time.Now().Add(pause + rand.N(pause+1))
}

// worst returns the verdict on a grant of several keys: one that is lost loses all.
func worst(errs []error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, dlock.ErrLost) }); i >= 0 {
		return errs[i]
	}
	return cmp.Or(errs...)
}

var errNoVerdict = errors.New("driver: the backend returned too few verdicts")
