package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// Extend implements [order.Store].
func (s *Store) Extend(ctx context.Context, t order.Target, by, life time.Duration) (o order.Order, changed bool, err error) {
	var (
		target time.Time // what a run has set, and perhaps committed
		push   func()
	)
	err = s.repeating(ctx, func(tx *gorm.DB) (err error) {
		changed, push = false, func() {}
		if o, err = s.readOrder(tx, t, s.dialect.forUpdate); err != nil || o.Status != order.Pending {
			return err
		}
		if !target.IsZero() && !o.ExpiresAt.Before(target) {
			changed = true // by a run whose reply was lost
			return nil
		}
		extended := o
		extended.ExpiresAt = o.ExpiresAt.Add(by)
		if extended.ExpiresAt.Sub(o.CreatedAt) > life {
			return nil
		}
		if err := tx.Exec("UPDATE orders SET expires_at = ? WHERE id = ?", extended.ExpiresAt.UnixMicro(), t.ID).Error; err != nil {
			return err
		}
		if push, err = s.schedule(tx, extended); err != nil {
			return err
		}
		o, changed, target = extended, true, extended.ExpiresAt
		return nil
	})
	if err != nil {
		return order.Order{}, false, err
	}
	push()
	return o, changed, nil
}
