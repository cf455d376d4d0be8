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

// lastRelease is how long a release may take if the context of its caller has ended. A release that had to be given up
// is repeated in the background.
const lastRelease = 500 * time.Millisecond

// Hold is one grant in the store, and the leases that share it: one, or more when its holder
// has entered again. It is what a [Renewer] sees of them.
type Hold struct {
	g      Grant
	values context.Context //nolint:containedctx // Never done: the values that renewals run with.
	limit  time.Time       // the end that no renewal moves; zero: none

	mu         sync.Mutex
	leases     []*Lease // those that have not ended
	over       error    // why there will be no more of them
	validUntil time.Time
	landed     <-chan struct{} // of the renewal that was in flight when the Renewer forgot the hold
	expiry     *time.Timer     // ends the hold at validUntil, no matter what any call to the store is doing
}

// open adds a lease. It is called under mu, or before anybody else knows the hold.
func (h *Hold) open(values context.Context, held []Held) *Lease {
	l := &Lease{hold: h, held: held}
	l.ctx, l.cancel = context.WithCancelCause(values)
	h.leases = append(h.leases, l)
	return l
}

// Grant returns the grant, which must not be changed.
func (h *Hold) Grant() *Grant { return &h.g }

// start opens the validity window and begins the renewals.
func (h *Hold) start() {
	if h.g.TTL > 0 && !h.Renewed(h.g.Sent, h.g.FirstWindow()) || h.g.Renewer == nil {
		return
	}
	if !h.g.Renewer.Keep(h.values, h) {
		if h.Lose(&LostError{Reason: Closed}) && h.g.Abandon == nil {
			go h.Free(h.values) // it is bounded, and nobody waits for it
		}
		return
	}
	h.mu.Lock()
	over := h.over
	h.mu.Unlock()
	if over != nil { // the window closed in between: renewals would keep for ever what nobody holds
		h.g.Renewer.Forget(h)
	}
}

// Renewed moves the end of the leases to a window after sent, minus a margin of a tenth, because the store has acknowledged
// that it keeps the grant for window. The store counts from the receipt of the attempt, later than sent. The margin covers
// a faster clock there, and a late timer here. Renewed reports whether the hold continues. It does nothing after the end.
func (h *Hold) Renewed(sent time.Time, window time.Duration) bool {
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return false
	}
	h.validUntil = sent.Add(window - window/10)
	if !h.limit.IsZero() && h.limit.Before(h.validUntil) {
		h.validUntil = h.limit
	}
	left := time.Until(h.validUntil)
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

// expire ends the hold if the validity window is over: a renewal may have moved its
// end just when the timer fired.
func (h *Hold) expire() {
	h.mu.Lock()
	now := time.Now()
	over := !now.Before(h.validUntil)
	h.mu.Unlock()
	switch {
	case !over:
	case !h.limit.IsZero() && !now.Before(h.limit):
		h.Lose(&LostError{Reason: MaxHold})
	default:
		h.Lose(nil)
	}
}

// Lose ends all leases as lost, and reports whether they had not ended before. Without a
// reason in err it is Expired. It never waits.
func (h *Hold) Lose(err error) bool {
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
			// This goroutine renews many grants, or delivers the messages of the store. It must not wait for
			// callbacks.
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
	if h.g.Ended != nil {
		h.g.Ended(lost)
	}
	return true
}

// end is called under mu, when all leases have ended.
func (h *Hold) end(why error) {
	h.over, h.leases = why, nil
	if h.expiry != nil {
		h.expiry.Stop()
	}
}

// leave ends l for its Release or Yield, and reports whether it was the last lease. If l has ended before, leave returns the outcome: of
// a concurrent release and loss, only one counts. With alone, it returns ErrReentry if the hold has other leases, and changes nothing.
func (h *Hold) leave(l *Lease, alone bool) (last bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := l.Err(); err != nil {
		return false, err
	}
	if alone && len(h.leases) > 1 {
		return false, ErrReentry
	}
	l.when = time.Now()
	l.cancel(ErrReleased)
	h.leases = slices.DeleteFunc(h.leases, func(other *Lease) bool { return other == l })
	if last = len(h.leases) == 0; last {
		h.end(ErrReleased)
	}
	return last, nil
}

// forget ends the renewals. The channel is closed when the one that was in flight has ended; nil if there was none.
func (h *Hold) forget() (landed <-chan struct{}) {
	if h.g.Renewer == nil {
		return nil
	}
	landed = h.g.Renewer.Forget(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.landed = cmp.Or(landed, h.landed)
	return h.landed
}

// Free releases a grant that no lease holds. If that fails, the grant expires, or the backend retries.
func (h *Hold) Free(ctx context.Context) { _ = h.give(ctx, h.g.Release) }

// release releases the grant to the store by give.
func (h *Hold) release(ctx context.Context, give func(context.Context) error) error {
	err := h.give(ctx, give)
	if h.g.Ended != nil {
		h.g.Ended(cmp.Or(err, ErrReleased))
	}
	return err
}

// give ends the renewals, and then calls release, with a limit on both.
func (h *Hold) give(ctx context.Context, release func(context.Context) error) error {
	limit := maxRelease
	if h.g.TTL > 0 {
		limit = min(limit, h.g.TTL)
	}
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(lastRelease, time.Until(end)))
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer stop()
	if landed := h.forget(); landed != nil {
		select {
		case <-landed:
		case <-ctx.Done(): // other leases want that renewal, or it ignores its context
			go func() {
				<-landed
				h.Free(h.values)
			}()
			return fmt.Errorf("dlock: release %q: a renewal is still out: %w", h.g.Key, ctx.Err())
		}
	}
	err := release(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLost):
		return h.g.lost(err)
	default:
		return fmt.Errorf("dlock: release %q: %w", h.g.Key, err)
	}
}
