package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

// lock takes the locks of offers.
func (q *commitQueue) lock(ctx context.Context, offers []stock.Offer) (*stock.Locks, error) {
	q.waits(offers)
	locks, err := stock.Acquire(ctx, offers)
	if err == nil {
		return locks, nil
	}
	if reason := retryable(err); reason != nil {
		q.observer.Retried(ctx, reason)
	}
	return nil, unlocked(ctx, err)
}

// waits notifies the publisher of the leases that are about to be asked for.
func (q *commitQueue) waits(offers []stock.Offer) {
	for _, o := range offers {
		if o.Strategy.Leased() {
			q.publisher.Waits(o.SKU, o.Strategy.Name, q.waitingFor)
		}
	}
}

// holds notifies the publisher of the leases of claims, and ended of their end.
func (q *commitQueue) holds(offers []stock.Offer, claims []stock.Claim, asked time.Time, valid ...func() time.Time) (ended func()) {
	var ends []func()
	for i, c := range claims {
		if c.Fence.Token > 0 {
			ends = append(ends, q.publisher.Held(c.SKU, offers[i].Strategy.Name, c.Fence.Token, asked, valid[i]))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// unlocked names an error of a lock that was not acquired. Its service is unavailable, unless somebody else holds the
// lock or the error is the end of ctx. That ctx is over by now proves nothing.
func unlocked(ctx context.Context, err error) error {
	ended := ctx.Err()
	if ended != nil && errors.Is(err, ended) || errors.Is(err, context.Cause(ctx)) || retryable(err) != nil {
		return err
	}
	return fmt.Errorf("%w: %w", stock.ErrLockAway, err)
}

// round is leases that lanes have asked for at the same time, in one round trip. Each lane has a unit in one transaction.
type round struct {
	release func()

	// Guarded by commitQueue.mu.
	open int     // units that have not been served
	over []*unit // the others
}

// ask takes the leases of lanes that are free, in one round trip. A lane whose lease another process has, or is not to be had, gets a
// leader, which waits for it.
func (q *commitQueue) ask(lanes []*lane) {
	offers, keys := make([]stock.Offer, len(lanes)), make([]string, len(lanes))
	var first *entry
	q.mu.Lock()
	for i, l := range lanes {
		offers[i], keys[i] = q.offers.of(l.key.sku), stock.LockKey(l.key.sku) // a token offset may have changed
		first = cmp.Or(first, l.first())
	}
	if first == nil { // all callers have left
		q.asking = false
		for _, l := range lanes {
			q.forget(l)
		}
		q.mu.Unlock()
		q.begin()
		return
	}
	q.mu.Unlock()
	ctx := context.WithoutCancel(first.ctx)
	asked := time.Now()
	lease, _ := offers[0].Strategy.Each.TryAcquireEach(ctx, keys) // a leader finds out why a lease is missing
	r := new(round)
	var ends []func()
	if lease != nil {
		work, cancel := lease.Context(ctx)
		r.release = func() {
			for _, end := range ends {
				end()
			}
			cancel()
			_ = lease.Release(ctx) // its TTL frees what the store does not learn of
		}
		ctx = work
	}
	units := make([]*unit, len(lanes)) // of those that have a lease
	for i, l := range lanes {
		if lease != nil && lease.FenceOf(keys[i]) != (dlock.Fence{}) {
			claims := []stock.Claim{offers[i].Claim(lease.FenceOf(keys[i]))}
			ends = append(ends, q.holds(offers[i:i+1], claims, asked, lease.ValidUntil)) // without mu: the publisher may ask who waits
			units[i] = &unit{lane: l, ctx: ctx, claims: claims, round: r}
			r.open++
		}
	}
	q.mu.Lock()
	q.asking = false
	for i, l := range lanes {
		if units[i] != nil {
			q.ready = append(q.ready, units[i])
		} else {
			q.work.Go(func() { q.lead(l) })
		}
	}
	q.mu.Unlock()
	q.beginHere()
}

// leaves ends the part of u in its round. The last unit releases the leases; then their lanes are served again.
func (q *commitQueue) leaves(u *unit) {
	r := u.round
	if u.err != nil { // it may be that of a row which refused a fence
		u.lane.offers[0].Refused(u.ctx, u.err)
	}
	q.mu.Lock()
	r.open--
	r.over = append(r.over, u)
	last := r.open == 0
	q.mu.Unlock()
	if !last {
		return
	}
	r.release()
	for _, u := range r.over {
		q.restart(u.lane, u.err)
	}
}
