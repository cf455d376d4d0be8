package order

import (
	"context"

	"example.com/shop/internal/stock"
)

// soldOut returns what refuses those orders of a batch that want more units than there are. It reads the level only if
// units were short lately; a refusal gives the level as the database had it then.
func (s *Service) soldOut(ctx context.Context, key lockKey) func(*pending) error {
	if _, short := s.short.Load(key.sku); !short || key.alone != nil {
		return nil
	}
	level, err := s.store.Level(ctx, key.sku)
	if err != nil {
		return nil
	}
	left := max(0, level.Available())
	if left > 0 {
		s.short.Delete(key.sku)
	}
	return func(p *pending) error {
		wanted := p.req.Order.Items[0].Quantity
		if wanted <= left {
			return nil
		}
		return &stock.ShortageError{Shortages: []stock.Shortage{{SKU: key.sku, Requested: wanted, Available: left}}}
	}
}

func isShort(r *Request) bool {
	_, short := shortage(r.Err)
	return short
}
