package order

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/stock"
)

// linesOf returns how each item is sold. The strategy of a SKU never changes, and its token offset
// hardly ever: the row refuses an order that has an old one, and the error gives the new one.
func (s *Service) linesOf(ctx context.Context, items []Item) ([]stock.Line, error) {
	lines := make([]stock.Line, len(items))
	var unknown []string
	for i, it := range items {
		line, err := s.lineOf(ctx, it.SKU)
		switch {
		case errors.Is(err, stock.ErrNotFound):
			unknown = append(unknown, it.SKU)
		case err != nil:
			return nil, err
		}
		lines[i] = line
	}
	if unknown != nil {
		return nil, &UnknownSKUError{unknown}
	}
	for _, l := range lines {
		if err := l.Strategy.Away(); err != nil { // before any lock is taken
			return nil, fmt.Errorf("%q: %w: %w", l.SKU, stock.ErrLockAway, err)
		}
	}
	return lines, nil
}

// lineOf returns how sku is sold. It reads that from the store once.
func (s *Service) lineOf(ctx context.Context, sku string) (stock.Line, error) {
	if l := s.line(sku); l.SKU != "" {
		return l, nil
	}
	level, err := s.store.Level(ctx, sku)
	if err != nil {
		return stock.Line{}, deadline(err)
	}
	st, err := s.strategies.Lookup(level.Strategy)
	if err != nil {
		return stock.Line{}, fmt.Errorf("%q: %w", sku, err)
	}
	l := stock.Line{SKU: sku, Strategy: st, Base: level.Base}
	s.lines.Store(sku, l)
	return l, nil
}

// line returns how sku is sold, if that was read before.
func (s *Service) line(sku string) stock.Line {
	v, _ := s.lines.Load(sku)
	l, _ := v.(stock.Line)
	return l
}
