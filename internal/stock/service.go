package stock

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/idempotency"
)

// Service is what may be done to stock without an order.
type Service struct {
	Reader

	store      Store
	strategies *Strategies
	restocked  func(skus ...string)
}

// NewService returns a service that keeps levels in store and accepts SKUs with the given strategies. restocked, which
// may be nil, is called with each SKU that got new units, and must not block.
func NewService(store Store, strategies *Strategies, restocked func(skus ...string)) *Service {
	return &Service{Reader: store, store: store, strategies: strategies, restocked: restocked}
}

// Create puts a new SKU on sale, of which l gives the name, the strategy, the units on
// hand and the limit per customer. Doing it again with the same values changes nothing
// and returns created == false.
//
// Errors: [ErrInvalid], [ErrUnknownStrategy], [ErrStrategyUnavailable],
// [ErrExists]. After an error nothing has changed.
func (s *Service) Create(ctx context.Context, l Level) (level Level, created bool, err error) {
	if !ValidSKU(l.SKU) {
		return Level{}, false, fmt.Errorf("%w: SKU %q", ErrInvalid, l.SKU)
	}
	if l.OnHand < 0 || l.OnHand > MaxOnHand {
		return Level{}, false, fmt.Errorf("%w: on_hand %d is not between 0 and %d", ErrInvalid, l.OnHand, MaxOnHand)
	}
	if l.Limit < 0 || l.Limit > MaxOnHand {
		return Level{}, false, fmt.Errorf("%w: limit %d is not between 0 and %d", ErrInvalid, l.Limit, MaxOnHand)
	}
	if _, err := s.strategies.Lookup(l.Strategy); err != nil {
		return Level{}, false, err
	}
	level, created, err = s.store.CreateSKU(ctx, Level{SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Limit: l.Limit})
	if created && s.restocked != nil {
		s.restocked(l.SKU)
	}
	return level, created, err
}

// Restock adds 1 to [MaxQuantity] units to sku. once may be nil. Errors: [ErrInvalid],
// [ErrNotFound], those of [idempotency].
func (s *Service) Restock(ctx context.Context, sku string, quantity int64, once *idempotency.Request) (Level, error) {
	if quantity < 1 || quantity > MaxQuantity {
		return Level{}, fmt.Errorf("%w: quantity %d is not between 1 and %d", ErrInvalid, quantity, MaxQuantity)
	}
	l, err := s.store.Restock(ctx, sku, quantity, once)
	if err == nil && s.restocked != nil {
		s.restocked(sku)
	}
	return l, err
}

// Rebase raises the token offset of sku to the fence that its row has accepted. Then the next lease has a newer fence,
// however low its token is. It is for a lock service that has lost its data and counts from the start, as ZooKeeper and
// etcd do. Until Rebase, the row refuses their fences, so nothing is sold. An earlier lease is refused, however high
// its token is, because a claim contains its offset, and the row compares it. If nothing was lost, Rebase costs a retry
// and does no harm.
//
// Errors: [ErrNotFound], [ErrUnknownStrategy], [ErrUnfenced], and [ErrRaisesCounter] where the fences
// are raised without it. After an error nothing has changed.
func (s *Service) Rebase(ctx context.Context, sku string) (Level, error) {
	l, err := s.store.Level(ctx, sku)
	if err != nil {
		return Level{}, err
	}
	st, err := s.strategies.Lookup(l.Strategy)
	if err != nil && !errors.Is(err, ErrStrategyUnavailable) {
		return Level{}, err
	}
	if st.Update != Fenced {
		return Level{}, fmt.Errorf("%w: %q is sold by %s", ErrUnfenced, sku, l.Strategy)
	}
	if st.RaisesCounter {
		return Level{}, fmt.Errorf("%w: %q is sold by %s", ErrRaisesCounter, sku, l.Strategy)
	}
	return s.store.Rebase(ctx, sku)
}
