package order

import (
	"context"
	"fmt"
	"slices"

	"example.com/shop/internal/stock"
)

// taken is what was taken of one line before the transaction.
type taken struct {
	offer stock.Offer
	hold  stock.Hold
	level *stock.Level // as it was seen latest since then; its zero value says that it was not
}

// takeAndEnter takes the units of those offers that have a counter, and has the orders of u committed that got theirs. It also
// commits those that got none, unless one read of the database, sent after the last of them had asked, confirms the
// shortage. An order with an unknown outcome may be stored and have its units, so only the transaction refuses it.
func (q *commitQueue) takeAndEnter(u *unit, offers []stock.Offer) error {
	var all []*taken
	defer func() {
		for _, t := range all {
			if t.level.SKU == "" {
				t.level = nil
			}
			t.offer.Strategy.Counter.Finish(t.hold, t.level)
		}
		for _, d := range u.decided {
			q.settle(u.lane, d.entries, d.err)
		}
	}()
	u.counted = true
	u.claims = slices.Clone(u.claims)
	for i, l := range offers {
		if l.Strategy.Counter == nil {
			continue
		}
		hold, err := q.take(u.ctx, l, wanted(u.entries, l.SKU))
		if err != nil {
			return q.enterUncertain(u, untaken(u.ctx, l, err))
		}
		t := &taken{offer: l, hold: hold, level: new(stock.Level)}
		all = append(all, t)
		u.claims[i].Seen = t.level
	}
	q.refuseShort(u.ctx, offers, all, u.entries)
	return q.enterOpen(u)
}

// enterOpen answers the orders of u that have their answers, and has the others committed.
func (q *commitQueue) enterOpen(u *unit) error {
	isOpen := func(e *entry) bool { return !e.Answered }
	u.decided = append(u.decided, settlement{slices.DeleteFunc(slices.Clone(u.entries), isOpen), nil})
	u.entries = slices.DeleteFunc(u.entries, func(e *entry) bool { return !isOpen(e) })
	if len(u.entries) == 0 {
		return nil
	}
	return q.enter(u)
}

// enterUncertain commits the orders of u that need no counter, since they may be stored already. The others get why there is none.
func (q *commitQueue) enterUncertain(u *unit, why error) error {
	if !slices.ContainsFunc(u.entries, func(e *entry) bool { return e.Uncertain }) {
		q.outcome(&part{unit: u, entries: u.entries, ctx: u.ctx}, why)
		return u.err
	}
	for _, e := range u.entries {
		if !e.Uncertain {
			e.Err, e.Answered = why, true
		}
	}
	return q.enterOpen(u)
}

// take takes units of l. A counter that does not know the SKU receives the level; if there is none to send, the
// transaction decides alone.
func (q *commitQueue) take(ctx context.Context, l stock.Offer, units []int64) (stock.Hold, error) {
	c := l.Strategy.Counter
	t, err := c.Take(ctx, l.SKU, units)
	if err != nil || t.Granted != nil {
		return t, err
	}
	level, err := q.store.Level(ctx, l.SKU)
	if err != nil {
		return t, nil //nolint:nilerr // the transaction will say the same
	}
	c.Finish(t, &level)
	return c.Take(ctx, l.SKU, units)
}

// untaken names an error of a counter.
func untaken(ctx context.Context, l stock.Offer, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("take units of %q: %w: %w", l.SKU, context.Cause(ctx), err)
	}
	return fmt.Errorf("take units of %q: %w: %w", l.SKU, stock.ErrLockAway, err)
}

// wanted returns how many units of sku each request wants.
func wanted(requests []*entry, sku string) []int64 {
	units := make([]int64, len(requests))
	for i, r := range requests {
		units[i] = r.Order.Quantity(sku)
	}
	return units
}

// refuseShort answers those of requests that a counter has no units for and the database has none
// for either.
func (q *commitQueue) refuseShort(ctx context.Context, offers []stock.Offer, all []*taken, requests []*entry) {
	var denied []*entry
	for i, r := range requests {
		if !r.Uncertain && slices.ContainsFunc(all, func(t *taken) bool { return t.hold.Denies(i) }) {
			denied = append(denied, r)
		}
	}
	if len(denied) == 0 {
		return
	}
	left := make([]int64, len(offers)) // of a basket all are read, to say all that it is short of
	for i, l := range offers {
		level, err := q.store.Level(ctx, l.SKU)
		if err != nil {
			return // the transaction will say
		}
		left[i] = max(0, level.Available())
		if j := slices.IndexFunc(all, func(t *taken) bool { return t.offer.SKU == l.SKU }); j >= 0 {
			*all[j].level = level
		}
	}
	for _, r := range denied {
		var short []stock.Shortage
		for i, l := range offers {
			if q := r.Order.Quantity(l.SKU); q > left[i] {
				short = append(short, stock.Shortage{SKU: l.SKU, Requested: q, Available: left[i]})
			}
		}
		if len(short) > 0 {
			r.Err, r.Answered = &stock.ShortageError{Shortages: short}, true
		}
	}
}
