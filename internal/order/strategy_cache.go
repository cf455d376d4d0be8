package order

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/stock"
)

// offersOf returns how each item is sold. The strategy of a SKU never changes, its token offset hardly ever. The row
// refuses an order with an old offset, and the error has the new one.
func (s *Service) offersOf(ctx context.Context, items []Item) ([]stock.Offer, error) {
	offers := make([]stock.Offer, len(items))
	var unknown []string
	for i, it := range items {
		offer, err := s.offerOf(ctx, it.SKU)
		switch {
		case errors.Is(err, stock.ErrNotFound):
			unknown = append(unknown, it.SKU)
		case err != nil:
			return nil, err
		}
		offers[i] = offer
	}
	if unknown != nil {
		return nil, &UnknownSKUError{unknown}
	}
	for _, l := range offers {
		if err := l.Strategy.Unavailable(); err != nil { // before any lock is taken
			return nil, fmt.Errorf("%q: %w: %w", l.SKU, stock.ErrLockAway, err)
		}
	}
	return offers, nil
}

// offerOf returns how sku is sold. It reads that from the store once.
func (s *Service) offerOf(ctx context.Context, sku string) (stock.Offer, error) {
	if l := s.offer(sku); l.SKU != "" {
		return l, nil
	}
	level, err := s.store.Level(ctx, sku)
	if err != nil {
		return stock.Offer{}, deadline(err)
	}
	st, err := s.strategies.Lookup(level.Strategy)
	if err != nil {
		return stock.Offer{}, fmt.Errorf("%q: %w", sku, err)
	}
	l := stock.Offer{SKU: sku, Strategy: st, Base: level.Base}
	s.offers.Store(sku, l)
	return l, nil
}

// offer returns how sku is sold, if that was read before.
func (s *Service) offer(sku string) stock.Offer {
	v, _ := s.offers.Load(sku)
	l, _ := v.(stock.Offer)
	return l
}
