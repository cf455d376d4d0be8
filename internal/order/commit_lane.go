package order

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

const (
	maxBatch   = 256                   // orders of a lane in one transaction
	maxBatches = 4                     // transactions under a lease for which others wait
	maxHold    = 20 * time.Millisecond // no transaction begins later than this after the first one of such a lease
	retryPause = time.Millisecond      // longest first pause before a lease is asked for again; doubles
	maxPause   = 32 * retryPause
)

// laneKey names a lane: orders of one SKU alone, or one order.
type laneKey struct {
	sku   string
	alone *entry
}

// laneOf returns the lane of e. Orders of one SKU share a lane if they share its lock, or need none and may share a transaction.
func laneOf(e *entry) laneKey {
	if o := e.offers[0]; len(e.offers) == 1 && !e.Queued && (o.Strategy.Cohort || o.Strategy.Sharable) {
		return laneKey{sku: o.SKU}
	}
	return laneKey{alone: e}
}

// lane is orders that wait for the same locks, first come, first served. It exists as long as orders wait in it or are
// served. Everything in it is guarded by commitQueue.mu.
type lane struct {
	key     laneKey
	offers  []stock.Offer // as its first order found them
	entries []*entry
	cancel  context.CancelCauseFunc // ends the leader's wait for the lease; nil when it does not wait
	pause   time.Duration           // after an attempt in vain
}

// first returns the first order that waits, or nil.
func (l *lane) first() *entry {
	if len(l.entries) == 0 {
		return nil
	}
	return l.entries[0]
}

// take takes up to most orders out of the lane. It is called with commitQueue.mu held.
func (l *lane) take(most int) []*entry {
	taken := slices.Clone(l.entries[:min(most, len(l.entries))])
	for _, e := range taken {
		e.flight.block(false)
		e.out = true
	}
	l.entries = slices.Delete(l.entries, 0, len(taken))
	return taken
}

// start has the orders of l served: at once if they need no lock, with the next round of leases if the service of their lease has
// rounds, or by a leader. It forgets a lane in which no order waits. It is called with mu held.
func (q *commitQueue) start(l *lane) {
	first := l.first()
	if first == nil {
		q.forget(l)
		return
	}
	_, short := q.short.Load(l.key.sku)
	lockless := !slices.ContainsFunc(l.offers, func(o stock.Offer) bool { return !o.Strategy.Sharable })
	switch {
	case l.pause > 0, first.Queued:
		q.work.Go(func() { q.lead(l) })
	case lockless:
		q.ready = append(q.ready, &unit{lane: l, ctx: context.WithoutCancel(first.ctx), claims: claimsOf(l.offers)})
	case l.key.alone == nil && !short && l.offers[0].Strategy.Each != nil:
		q.leasing = append(q.leasing, l)
	default:
		q.work.Go(func() { q.lead(l) })
	}
}

// forget removes l, in which no order waits. It is called with mu held.
func (q *commitQueue) forget(l *lane) {
	if q.lanes[l.key] == l { // and not the one of the orders that did not wait for those of l
		delete(q.lanes, l.key)
	}
}

// restart is start for a lane whose unit has been served, with err if it is to be served again.
func (q *commitQueue) restart(l *lane, err error) {
	q.mu.Lock()
	if l.pause = 0; err != nil {
		l.pause = retryPause
	}
	offers, again := l.offers, l.first() != nil
	q.start(l)
	q.mu.Unlock()
	if again {
		q.waits(offers)
	}
	q.begin()
}

func skusOf(offers []stock.Offer) []string {
	skus := make([]string, len(offers))
	for i, o := range offers {
		skus[i] = o.SKU
	}
	return skus
}

func claimsOf(offers []stock.Offer) []stock.Claim {
	claims := make([]stock.Claim, len(offers))
	for i, o := range offers {
		claims[i] = o.Claim(dlock.Fence{})
	}
	return claims
}

// lead serves l under locks of its own, until no order waits in it. Between two leases other processes have their turn.
func (q *commitQueue) lead(l *lane) {
	for blocked := false; ; {
		ctx, cancel, offers, seq := q.nextLease(l)
		if cancel == nil {
			return
		}
		var locks *stock.Locks
		var err error
		if blocked { // by a row: the leases have been given up
			err = q.store.AwaitRows(ctx, skusOf(offers))
		}
		if q.refuse(ctx, l); err == nil && q.waitsIn(l) {
			locks, err = q.lock(ctx, offers)
		}
		held := locks != nil
		if held {
			err = q.serve(l, offers, locks)
		}
		if err != nil { // it may be that of a row which refused a fence
			for _, o := range offers {
				o.Refused(ctx, err)
			}
		}
		cancel(nil)
		blocked = held && errors.Is(err, ErrCommitAlone)
		switch {
		case blocked:
		case err == nil:
			l.pause = 0
		case !held && !anotherTry(err):
			q.dismiss(l, seq, func(e *entry) error { return e.verdict(err) })
		default: // serve has put the orders back, or they have not left the lane
			l.pause = max(l.pause, retryPause)
			time.Sleep(rand.N(l.pause))
			l.pause = min(2*l.pause, maxPause)
		}
	}
}

// nextLease returns how the SKUs of l are sold now, and a context for the leader's next lease. The context ends if all orders leave
// before the leader has the lease. cancel is nil when no order waits: then the lane has no leader any more.
func (q *commitQueue) nextLease(l *lane) (ctx context.Context, cancel context.CancelCauseFunc, offers []stock.Offer, seq uint64) {
	for _, o := range l.offers {
		offers = append(offers, q.offers.of(o.SKU)) // a token offset may have changed since the latest attempt
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	first := l.first()
	if first == nil {
		q.forget(l)
		return nil, nil, nil, 0
	}
	l.offers = offers
	for _, e := range l.entries {
		e.flight.block(len(offers) == 1) // a basket waits for others
	}
	ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(first.ctx))
	return ctx, l.cancel, offers, q.seq
}

// serve commits what waits in l, transaction by transaction, for as long as one lease may be kept, and releases locks.
// An error says that they are of no more use.
func (q *commitQueue) serve(l *lane, offers []stock.Offer, locks *stock.Locks) error {
	defer locks.Release()
	ctx := locks.Context
	defer q.holds(offers, locks.Claims, locks.Asked, locks.Valid...)()
	q.mu.Lock()
	l.cancel = nil // the leader has the lease, even if all callers leave
	for _, e := range l.entries {
		e.flight.block(false)
	}
	q.mu.Unlock()
	end := time.Now().Add(maxHold)
	for n := range maxBatches {
		if n > 0 {
			if time.Now().After(end) {
				return nil
			}
			q.refuse(ctx, l)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !q.waitsIn(l) {
			return nil
		}
		if err := q.serveOnce(&unit{lane: l, ctx: ctx, claims: locks.Claims}, offers); err != nil {
			return err
		}
	}
	return nil
}

// serveOnce has one transaction for the lane of u.
func (q *commitQueue) serveOnce(u *unit, offers []stock.Offer) error {
	counted := slices.ContainsFunc(offers, func(o stock.Offer) bool { return o.Strategy.Counter != nil })
	q.mu.Lock()
	first := u.lane.first()
	if first != nil && (counted || first.Queued || first.Uncertain || !u.sharable()) { // the others may leave until a transaction takes them
		u.entries = u.lane.take(maxBatch)
	}
	q.mu.Unlock()
	if first == nil {
		return nil
	}
	if counted {
		return q.takeAndEnter(u, offers)
	}
	return q.enter(u)
}

// enter has u served in a transaction, and returns why its orders wait again, or nil.
func (q *commitQueue) enter(u *unit) error {
	if u.entries != nil && !u.sharable() {
		q.share(u.parts(true), true)
		return u.err
	}
	u.served = make(chan error, 1)
	q.mu.Lock()
	q.ready = append(q.ready, u)
	q.mu.Unlock()
	q.beginHere()
	return <-u.served
}

// waitsIn reports whether an order waits in l.
func (q *commitQueue) waitsIn(l *lane) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(l.entries) > 0
}
