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

// takeAndCommit takes the units of those offers that have a counter, and commits the requests that got theirs. It also
// commits those that got none, unless one read of the database, sent after the last of them had asked, confirms the
// shortage. A request in [Request.Uncertain] may be stored and have its units, so only the transaction refuses it.
func (s *Service) takeAndCommit(ctx context.Context, held heldLocks, requests []*Request) error {
	open := slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool { return r.Answered })
	offers, claims := held.offers, slices.Clone(held.claims)
	var all []*taken
	defer func() {
		for _, t := range all {
			if t.level.SKU == "" {
				t.level = nil
			}
			t.offer.Strategy.Counter.Finish(t.hold, t.level)
		}
	}()
	for i, l := range offers {
		if l.Strategy.Counter == nil {
			continue
		}
		hold, err := s.take(ctx, l, wanted(open, l.SKU))
		if err != nil {
			return s.commitUncertain(ctx, claims, open, untaken(ctx, l, err))
		}
		t := &taken{offer: l, hold: hold, level: new(stock.Level)}
		all = append(all, t)
		claims[i].Seen = t.level
	}
	s.refuseShort(ctx, offers, all, open)
	return s.commitOpen(ctx, claims, open)
}

// take takes units of l. A counter that does not know the SKU receives the level; if there is none to send, the
// transaction decides alone.
func (s *Service) take(ctx context.Context, l stock.Offer, units []int64) (stock.Hold, error) {
	c := l.Strategy.Counter
	t, err := c.Take(ctx, l.SKU, units)
	if err != nil || t.Granted != nil {
		return t, err
	}
	level, err := s.store.Level(ctx, l.SKU)
	if err != nil {
		return t, nil //nolint:nilerr // the transaction will say the same
	}
	c.Finish(t, &level)
	return c.Take(ctx, l.SKU, units)
}

// commitOpen commits those of requests that have no answer.
func (s *Service) commitOpen(ctx context.Context, claims []stock.Claim, requests []*Request) error {
	open := slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool { return r.Answered })
	if len(open) == 0 {
		return nil
	}
	return s.group.commit(ctx, &Batch{Claims: claims, Requests: open})
}

// commitUncertain commits those that need no counter, since they may be stored already, and answers the
// others with why there is none.
func (s *Service) commitUncertain(ctx context.Context, claims []stock.Claim, requests []*Request, why error) error {
	if !slices.ContainsFunc(requests, func(r *Request) bool { return r.Uncertain }) {
		return why
	}
	for _, r := range requests {
		if !r.Uncertain {
			r.Err, r.Answered = why, true
		}
	}
	return s.commitOpen(ctx, claims, requests)
}

// untaken names an error of a counter.
func untaken(ctx context.Context, l stock.Offer, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("take units of %q: %w: %w", l.SKU, context.Cause(ctx), err)
	}
	return fmt.Errorf("take units of %q: %w: %w", l.SKU, stock.ErrLockAway, err)
}

// wanted returns how many units of sku each request wants.
func wanted(requests []*Request, sku string) []int64 {
	units := make([]int64, len(requests))
	for i, r := range requests {
		units[i] = r.Order.Quantity(sku)
	}
	return units
}

// refuseShort answers those of requests that a counter has no units for and the database has none
// for either.
func (s *Service) refuseShort(ctx context.Context, offers []stock.Offer, all []*taken, requests []*Request) {
	var denied []*Request
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
		level, err := s.store.Level(ctx, l.SKU)
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
