package order

import (
	"fmt"
	"slices"
	"sync"
)

// inFlight counts orders in flight by what they need: a SKU or a lock service. So orders that wait for the same locked
// row, or for the same unavailable service, do not use up the permits. The zero value counts none.
type inFlight struct {
	mu sync.Mutex
	by map[string]int // guarded by mu
}

// enter counts an order that needs names until leave is called. It fails with full if there are most orders already
// that need one of them. others is how many there were of the name that most needed. It does not block.
func (c *inFlight) enter(names []string, most int, full error) (others int, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.by[name] >= most {
			return 0, nil, full
		}
		others = max(others, c.by[name])
	}
	if c.by == nil {
		c.by = make(map[string]int)
	}
	for _, name := range names {
		c.by[name]++
	}
	return others, func() {
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

// enter admits the order of e, which is about to be placed, until leave is called. A SKU may have half as many orders
// as this instance places at once, a lock service three quarters. All together may have as many as there are permits.
// Under overload the bounds of a SKU and of all are lower. An order that joins others in a cohort is not counted: it
// waits for their batch, whose size is no sign of overload.
func (s *Service) enter(e *entry) (leave func(), err error) {
	var leaves []func()
	end := func() {
		for _, leave := range slices.Backward(leaves) {
			leave()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	p := s.permits.Stats()
	share := p.Permits / max(1, p.Instances)
	most := max(1, share/2)
	skus, services := skusOf(e.offers), []string(nil) // each once
	for _, o := range e.offers {
		if s := o.Strategy.Store; s != "" && !slices.Contains(services, s) {
			services = append(services, s)
		}
	}
	others, leaveSKUs, err := s.inFlight.enter(skus, most, ErrCrowded)
	if err != nil {
		for _, sku := range skus {
			if o := s.overloadOf(sku, 0); o != nil {
				o.refused()
			}
		}
		return nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	leaves = append(leaves, leaveSKUs)
	_, leaveServices, err := s.services.enter(services, max(1, share-share/4), ErrServiceCrowded)
	if err != nil {
		s.overload.refused()
		return nil, fmt.Errorf("%w: %w", err, s.permits.Refuse())
	}
	leaves = append(leaves, leaveServices)
	enter := func(o *overload, first bool, most int, shares bool) bool {
		f := o.enter(first, most)
		if f != nil {
			f.shares = shares
			e.flights, leaves = append(e.flights, f), append(leaves, f.leave)
		}
		return f != nil
	}
	shares := true // a transaction, unless one of its SKUs has one for each order
	for _, l := range e.offers {
		o, shared := s.overloadOf(l.SKU, others), !l.Strategy.Update.ReadsBefore()
		shares = shares && shared
		if o != nil && !l.Strategy.Cohort && !enter(o, false, most, shared && l.Strategy.Store == "") { // a lock has one order of the SKU at a time
			return nil, fmt.Errorf("%w: %w", ErrCrowded, s.permits.Refuse())
		}
	}
	if joins := others > 0 && len(e.offers) == 1 && e.offers[0].Strategy.Cohort; !joins {
		if !enter(&s.overload, others == 0, p.Permits, shares) {
			return nil, fmt.Errorf("%w: %w", ErrOverloaded, s.permits.Refuse())
		}
		e.flight = e.flights[len(e.flights)-1]
	}
	release, err := s.permits.Take(e.ctx)
	if err != nil {
		s.overload.refused()
		return nil, err
	}
	leaves = append(leaves, release)
	for _, f := range e.flights {
		f.begin()
	}
	return end, nil
}

// overloadOf returns the bound for the orders of a SKU, alongside so many others. It is nil if there never were as many
// as any load may have.
func (s *Service) overloadOf(sku string, others int) *overload {
	v, ok := s.wanted.Load(sku)
	if !ok && others >= fewest {
		v, _ = s.wanted.LoadOrStore(sku, s.overload.ofSKU())
	}
	o, _ := v.(*overload)
	return o
}
