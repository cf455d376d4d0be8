package order

import (
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
// that need one of them. It does not block.
func (c *crowds) enter(names []string, most int, full error) (leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.by[name] >= most {
			return nil, full
		}
	}
	if c.by == nil {
		c.by = make(map[string]int)
	}
	for _, name := range names {
		c.by[name]++
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, name := range names {
			if c.by[name]--; c.by[name] == 0 {
				delete(c.by, name)
			}
		}
	}, nil
}

// crowd counts an order of lines: of one SKU there are half as many as this instance places at once, and of those
// that need the same lock service three quarters.
func (s *Service) crowd(lines []stock.Line) (leave func(), err error) {
	p := s.permits.Stats()
	share := p.Permits / max(1, p.Instances)
	var skus, services []string
	for _, l := range lines {
		skus = append(skus, l.SKU)
		if l.Strategy.Store != "" {
			services = append(services, l.Strategy.Store)
		}
	}
	slices.Sort(services)
	leaveSKUs, err := s.crowds.enter(skus, max(1, share/2), ErrCrowded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	leaveServices, err := s.services.enter(slices.Compact(services), max(1, share-share/4), ErrSaturated)
	if err != nil {
		leaveSKUs()
		return nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	return func() {
		leaveServices()
		leaveSKUs()
	}, nil
}
