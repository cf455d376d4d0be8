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

// all returns how each item is sold. It reads that from the store once.
func (k *offers) all(ctx context.Context, items []Item) ([]stock.Offer, error) {
	offers := make([]stock.Offer, len(items))
	var unknown, elsewhere []string
	for i, it := range items {
		if offers[i] = k.of(it.SKU); offers[i].SKU != "" {
			continue
		}
		level, err := k.store.Level(ctx, it.SKU)
		if errors.Is(err, stock.ErrNotFound) {
			if unknown = append(unknown, it.SKU); errors.Is(err, stock.ErrOtherShard) {
				elsewhere = append(elsewhere, it.SKU)
			}
			continue
		}
		if err != nil {
			return nil, deadline(err)
		}
		st, err := k.strategies.Lookup(level.Strategy)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", it.SKU, err)
		}
		offers[i] = stock.Offer{SKU: it.SKU, Strategy: st, Base: level.Base}
		k.known.Store(it.SKU, offers[i])
	}
	if unknown != nil {
		return nil, &UnknownSKUError{unknown, elsewhere}
	}
	for _, l := range offers {
		if err := l.Strategy.Unavailable(); err != nil { // before any lock is taken
			return nil, fmt.Errorf("%q: %w: %w", l.SKU, stock.ErrLockAway, err)
		}
	}
	return offers, nil
}

// of returns how sku is sold, if that was read before.
func (k *offers) of(sku string) stock.Offer {
	v, _ := k.known.Load(sku)
	l, _ := v.(stock.Offer)
	return l
}

// strategy returns the name of the strategy by which items are sold: "mixed" if there are several, "" if one is unknown.
func (k *offers) strategy(items []Item) (name string) {
	for _, it := range items {
		is := k.of(it.SKU).Strategy.Name
		if is == "" {
			return ""
		}
		name = common(name, is)
	}
	return name
}

// common returns the strategy of two groups of SKUs; the first one may be empty.
func common(name, other string) string {
	if name == "" || name == other {
		return other
	}
	return "mixed"
}

// rebased notes the token offset that a row had when it refused an order.
func (k *offers) rebased(e *stock.FencedError) {
	if l := k.of(e.Refused.SKU); e.Base > l.Base {
		l.Base = e.Base
		k.known.Store(l.SKU, l)
	}
}
