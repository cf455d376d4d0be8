package order

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.com/shop/internal/stock"
)

// offers knows how SKUs are sold. The strategy of a SKU never changes, its token offset hardly ever. The row
// refuses an order with an old offset, and the error has the new one.
type offers struct {
	store      Store
	strategies *stock.Strategies
	known      sync.Map // SKU to stock.Offer, of SKUs that were sold before
}

// all returns how each item is sold.
func (k *offers) all(ctx context.Context, items []Item) ([]stock.Offer, error) {
	offers := make([]stock.Offer, len(items))
	var unknown []string
	for i, it := range items {
		offer, err := k.read(ctx, it.SKU)
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

// read returns how sku is sold. It reads that from the store once.
func (k *offers) read(ctx context.Context, sku string) (stock.Offer, error) {
	if l := k.of(sku); l.SKU != "" {
		return l, nil
	}
	level, err := k.store.Level(ctx, sku)
	if err != nil {
		return stock.Offer{}, deadline(err)
	}
	st, err := k.strategies.Lookup(level.Strategy)
	if err != nil {
		return stock.Offer{}, fmt.Errorf("%q: %w", sku, err)
	}
	l := stock.Offer{SKU: sku, Strategy: st, Base: level.Base}
	k.known.Store(sku, l)
	return l, nil
}

// of returns how sku is sold, if that was read before.
func (k *offers) of(sku string) stock.Offer {
	v, _ := k.known.Load(sku)
	l, _ := v.(stock.Offer)
	return l
}

// again returns offers as they are now.
func (k *offers) again(offers []stock.Offer) []stock.Offer {
	now := make([]stock.Offer, len(offers))
	for i, l := range offers {
		now[i] = k.of(l.SKU)
	}
	return now
}

// rebased notes the token offset that a row had when it refused an order.
func (k *offers) rebased(e *stock.FencedError) {
	if l := k.of(e.Refused.SKU); e.Base > l.Base {
		l.Base = e.Base
		k.known.Store(l.SKU, l)
	}
}
