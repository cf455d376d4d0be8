package stock

import (
	"context"
	"fmt"
)

// Service is what may be done to stock without an order.
type Service struct {
	store      Store
	strategies *Strategies
}

// NewService returns a service that keeps levels in store and accepts SKUs with
// the given strategies.
func NewService(store Store, strategies *Strategies) *Service {
	return &Service{store: store, strategies: strategies}
}

// Create puts onHand units of a new SKU on sale by the named strategy. Doing it
// again with the same arguments changes nothing and returns created == false.
//
// Errors: [ErrInvalid], [ErrUnknownStrategy], [ErrStrategyUnavailable],
// [ErrExists]. After an error nothing has changed.
func (s *Service) Create(ctx context.Context, sku, strategy string, onHand int64) (level Level, created bool, err error) {
	if !ValidSKU(sku) {
		return Level{}, false, fmt.Errorf("%w: SKU %q", ErrInvalid, sku)
	}
	if onHand < 0 || onHand > MaxOnHand {
		return Level{}, false, fmt.Errorf("%w: on_hand %d is not between 0 and %d", ErrInvalid, onHand, MaxOnHand)
	}
	if _, err := s.strategies.Lookup(strategy); err != nil {
		return Level{}, false, err
	}
	return s.store.CreateSKU(ctx, Level{SKU: sku, Strategy: strategy, OnHand: onHand})
}

// Level returns the level of sku, or [ErrNotFound].
func (s *Service) Level(ctx context.Context, sku string) (Level, error) {
	return s.store.Level(ctx, sku)
}

// Levels returns up to limit levels in the order of their SKUs, beginning
// behind after.
func (s *Service) Levels(ctx context.Context, after string, limit int) ([]Level, error) {
	return s.store.Levels(ctx, after, limit)
}

// Restock adds 1 to [MaxQuantity] units to sku. Errors: [ErrInvalid],
// [ErrNotFound].
func (s *Service) Restock(ctx context.Context, sku string, quantity int64) (Level, error) {
	if quantity < 1 || quantity > MaxQuantity {
		return Level{}, fmt.Errorf("%w: quantity %d is not between 1 and %d", ErrInvalid, quantity, MaxQuantity)
	}
	return s.store.Restock(ctx, sku, quantity)
}

// Audit compares columns, ledger and orders of sku, or of every SKU when sku is
// empty. Errors: [ErrNotFound].
func (s *Service) Audit(ctx context.Context, sku string) ([]Audit, error) {
	return s.store.Audit(ctx, sku)
}
