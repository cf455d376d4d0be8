package dlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxRelease bounds a release for leases whose TTL is longer, or that have none.
const maxRelease = 5 * time.Second

// lastRelease is how long a release may take if the time of its caller is over. A backend repeats one that it had to give up.
const lastRelease = 500 * time.Millisecond

// hold is one grant in the store, and the leases that share it: one, or more
// when its holder has entered again.
type hold struct {
	g       Grant
	values  context.Context //nolint:containedctx // Never done: the values that renewals run with.
	renewer *Renewer        // nil if a session keeps the grant
	state   renewal         // guarded by renewer.mu

	mu      sync.Mutex
	leases  []*Lease // those that have not ended
	over    error    // why there will be no more of them
	trusted time.Time
	expiry  *time.Timer // ends the hold at trusted, no matter what any call to the store is doing
}

// open adds a lease. It is called under mu, or before anybody else knows the hold.
func (h *hold) open(values context.Context, held []Held) *Lease {
	l := &Lease{hold: h, held: held}
	l.ctx, l.cancel = context.WithCancelCause(values)
	h.leases = append(h.leases, l)
	return l
}

func (h *hold) start() {
	if h.g.TTL > 0 {
		h.keep()
	}
	if h.g.Lost != nil {
		go h.watch()
	}
}

// keep opens the trust window and begins the renewals.
func (h *hold) keep() {
	h.renewer = h.g.Renewer
	if h.renewer == nil {
		h.renewer = alone(&h.g)
	}
	if !h.trust(h.g.Sent, h.g.first()) {
		return
	}
	if !h.renewer.add(h) {
		if h.shut() && h.g.Abandon == nil {
			go h.giveBack(h.values) // it is bounded, and nobody waits for it
		}
		return
	}
	h.mu.Lock()
	over := h.over
	h.mu.Unlock()
	if over != nil { // the window closed in between: renewals would keep for ever what nobody holds
		h.forget()
	}
}

// watch waits for an announced loss, or for the end.
func (h *hold) watch() {
	h.mu.Lock()
	leases := slices.Clone(h.leases)
	h.mu.Unlock()
	for len(leases) > 0 {
		select {
		case err := <-h.g.Lost:
			h.lose(err)
			return
		case <-leases[0].ctx.Done():
		}
		h.mu.Lock()
		leases = slices.Clone(h.leases)
		h.mu.Unlock()
	}
}

// trust moves the end of the trust window to a window after sent, minus the
// margin. The store counts from when it received the attempt, later than sent; a
// tenth covers a clock that runs faster there, and a timer that fires late here.
// It reports whether the hold goes on.
func (h *hold) trust(sent time.Time, window time.Duration) bool {
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return false
	}
	h.trusted = sent.Add(window - window/10)
	if limit := h.limit(); !limit.IsZero() && limit.Before(h.trusted) {
		h.trusted = limit
	}
	left := time.Until(h.trusted)
	switch {
	case h.expiry != nil:
		h.expiry.Reset(left)
	case left > 0:
		h.expiry = time.AfterFunc(left, h.expire)
	}
	h.mu.Unlock()
	if left <= 0 { // the process slept through the whole window
		h.expire()
		return false
	}
	return true
}

// limit is the end that no renewal moves.
func (h *hold) limit() time.Time {
	if h.g.MaxHold <= 0 {
		return time.Time{}
	}
	return h.g.Sent.Add(h.g.MaxHold)
}

// expire ends the hold if the trust window is over: a renewal may have moved its
// end just when the timer fired.
func (h *hold) expire() {
	h.mu.Lock()
	now := time.Now()
	over, limit := !now.Before(h.trusted), h.limit()
	h.mu.Unlock()
	switch {
	case !over:
	case !limit.IsZero() && !now.Before(limit):
		h.lose(&LostError{Reason: MaxHold})
	default:
		h.lose(nil)
	}
}

// lose ends all leases, and reports whether they had not ended before. It never waits.
func (h *hold) lose(err error) bool {
	lost := h.g.lost(err)
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return false
	}
	leases := h.leases
	for _, l := range leases {
		l.cancel(lost)
	}
	h.end(lost)
	h.mu.Unlock()
	h.forget()
	for _, l := range leases {
		if calls := l.settle(lost); len(calls) > 0 {
			// Here is a renewal of many grants, or what delivers the messages of the store:
			// neither waits for what a caller does with the news.
			go func() {
				for _, f := range calls {
					f(lost)
				}
			}()
		}
	}
	if h.g.Abandon != nil {
		h.g.Abandon()
	}
	h.ended(lost)
	return true
}

// end is called under mu, when all leases have ended.
func (h *hold) end(why error) {
	h.over, h.leases = why, nil
	if h.expiry != nil {
		h.expiry.Stop()
	}
}

// leave takes l out, and reports whether it was the last one. It returns the loss if that
// came first: of a release and a loss at the same time one is what has happened, so that
// a release that is told of a loss later was told so by the store.
func (h *hold) leave(l *Lease) (last bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := l.Err(); err != nil {
		return false, err
	}
	l.release()
	h.leases = slices.DeleteFunc(h.leases, func(other *Lease) bool { return other == l })
	if len(h.leases) > 0 {
		return false, nil
	}
	h.end(ErrReleased)
	return true, nil
}

// leaveAlone ends l and the hold if that has no other lease, and returns ErrReentry if
// it has, or what ended l or the hold before. A Release of l that comes meanwhile
// finds l either untouched or ended.
func (h *hold) leaveAlone(l *Lease) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over == nil && len(h.leases) > 1 && !l.asked.Load() {
		return ErrReentry
	}
	if !l.asked.CompareAndSwap(false, true) {
		return cmp.Or(l.Err(), ErrReleased)
	}
	if h.over != nil {
		return h.over
	}
	l.release()
	h.end(ErrReleased)
	return nil
}

// ended says that the grant is over.
func (h *hold) ended(outcome error) {
	if h.g.Ended != nil {
		h.g.Ended(outcome)
	}
}

// forget ends the renewals, and returns the one in flight, or nil.
func (h *hold) forget() *flight {
	if h.renewer == nil {
		return nil
	}
	return h.renewer.remove(h)
}

// release gives the grant back to the store by give.
func (h *hold) release(ctx context.Context, give func(context.Context) error) error {
	err := h.give(ctx, give)
	h.ended(cmp.Or(err, ErrReleased))
	return err
}

func (h *hold) give(ctx context.Context, give func(context.Context) error) error {
	limit := maxRelease
	if h.g.TTL > 0 {
		limit = min(limit, h.g.TTL)
	}
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(lastRelease, time.Until(end)))
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	if f := h.forget(); f != nil {
		select {
		case <-f.landed:
		case <-ctx.Done(): // the renewal ignores its context
			return fmt.Errorf("dlock: release %q: a renewal is still out: %w", h.g.Key, ctx.Err())
		}
	}
	err := give(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLost):
		return h.g.lost(err)
	default:
		return fmt.Errorf("dlock: release %q: %w", h.g.Key, err)
	}
}
