package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// Extend implements [order.Store]. A second extension looks like a repetition of the first one. So only a key helps
// when the reply to COMMIT was lost.
func (s *Store) Extend(ctx context.Context, t order.Target, by, life time.Duration) (o order.Order, changed bool, err error) {
	var push func()
	err = s.answering(ctx, s.resolving(t.Key), t.Key, func(tx *gorm.DB) (result any, done bool, err error) {
		changed, push = false, func() {}
		if _, o, err = s.lockOrder(tx, t); err != nil || o.Status != order.Pending {
			return nil, false, err
		}
		extended := o
		extended.ExpiresAt = o.ExpiresAt.Add(by)
		if extended.ExpiresAt.Sub(o.CreatedAt) > life {
			return nil, false, nil
		}
		if err := tx.Exec("UPDATE orders SET expires_at = ? WHERE id = ?", extended.ExpiresAt.UnixMicro(), t.ID).Error; err != nil {
			return nil, false, err
		}
		if push, err = s.timers.Schedule(tx.Statement.Context, tx.Statement.ConnPool, extended.Timer()); err != nil {
			return nil, false, err
		}
		o, changed = extended, true
		return o, true, nil
	})
	if err != nil {
		return order.Order{}, false, err
	}
	push()
	return o, changed, nil
}
