package order

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"example.com/shop/internal/stock"
)

// crowds counts orders in flight by what they need, a SKU or a lock service, so that those which wait for
// the same thing do not use up the permits: a row that somebody else has locked, or a service that does not
// answer. The zero value counts none.
type crowds struct {
	mu sync.Mutex
	by map[string]int // guarded by mu
}

// enter counts an order that needs names until leave is called. It fails with full if there are most orders already
// that need one of them. first says that there was none. It does not block.
func (c *crowds) enter(names []string, most int, full error) (first bool, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first = true
	for _, name := range names {
		if c.by[name] >= most {
			return false, nil, full
		}
		first = first && c.by[name] == 0
	}
	if c.by == nil {
		c.by = make(map[string]int)
	}
	for _, name := range names {
		c.by[name]++
	}
	return first, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, name := range names {
			if c.by[name]--; c.by[name] == 0 {
				delete(c.by, name)
			}
		}
	}, nil
}

// Usable returns how many orders this instance places at once under the load that it measures; 0 if there are no permits.
func (s *Service) Usable() int {
	if s.permits == nil {
		return 0
	}
	return s.overload.usable(s.permits.Stats().Permits)
}

// enter admits an order of lines that is about to be placed, until leave is called. Of one SKU there are half as many as this instance
// places at once, of those that need the same lock service three quarters, and of all as many as overload allows and as there are
// permits. The flight is nil for an order that joins others in a cohort: it waits for a batch of theirs, whose size is no sign of overload.
func (s *Service) enter(ctx context.Context, lines []stock.Line) (_ *flight, leave func(), err error) {
	var f *flight
	var leaves []func()
	end := func() {
		for _, leave := range slices.Backward(leaves) {
			leave()
		}
	}
	p := s.permits.Stats()
	share := p.Permits / max(1, p.Instances)
	defer func() {
		if err != nil {
			end()
			s.overload.refused()
		}
	}()
	var skus, services []string
	for _, l := range lines {
		skus = append(skus, l.SKU)
		if l.Strategy.Store != "" {
			services = append(services, l.Strategy.Store)
		}
	}
	slices.Sort(services)
	first, leaveSKUs, err := s.crowds.enter(skus, max(1, share/2), ErrCrowded)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	leaves = append(leaves, leaveSKUs)
	_, leaveServices, err := s.services.enter(slices.Compact(services), max(1, share-share/4), ErrSaturated)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	leaves = append(leaves, leaveServices)
	if first || len(lines) > 1 || s.cohorts[lines[0].Strategy.Name] == nil {
		if f = s.overload.enter(first, p.Permits); f == nil {
			return nil, nil, s.permits.Refuse()
		}
		leaves = append(leaves, func() { s.overload.leave(f) })
	}
	release, err := s.permits.Take(ctx)
	if err != nil {
		return nil, nil, err
	}
	leaves = append(leaves, release)
	return f, end, nil
}
