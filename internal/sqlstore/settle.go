package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore/bulkhead"
)

// Settle implements [order.Store].
func (s *Store) Settle(ctx context.Context, t order.Target, to order.Status, paymentID string) (o order.Order, changed bool, err error) {
	err = s.rows.Do(ctx, nil, func(at *bulkhead.Places) error {
		o, changed, err = s.settle(ctx, at, t, to, paymentID)
		return err
	})
	return o, changed, err
}

// settle is Settle with places at the SKUs of the order, which it reads in the transaction.
func (s *Store) settle(ctx context.Context, at *bulkhead.Places, t order.Target, to order.Status, paymentID string) (o order.Order, changed bool, err error) {
	err = s.answering(ctx, s.repeating, t.Key, func(tx *gorm.DB) (result any, done bool, err error) {
		var row orderRow
		if row, o, err = s.lockOrder(tx, t); err != nil {
			return nil, false, err
		}
		was := o.Status
		changed = was == order.Pending || was == order.Queued && to == order.Cancelled
		if !changed {
			return nil, false, nil
		}
		if was == order.Pending {
			if err := at.Need(skusOf(o)...); err != nil {
				return nil, false, err
			}
		}
		var first script
		if was == order.Pending && to == order.Cancelled {
			limited, err := s.limitsOf(tx, skusOf(o))
			if err != nil {
				return nil, false, err
			}
			for _, c := range countersOf(o, limited) {
				first.add("UPDATE customer_usage SET units = units - ? WHERE sku = ? AND customer_id = ?", c.Units, c.SKU, c.CustomerID)
			}
		}
		first.add("UPDATE orders SET status = ?, payment_id = ? WHERE id = ?", string(to), paymentID, t.ID)
		if err := s.run(tx, &first); err != nil {
			return nil, false, err
		}
		o.Status, o.PaymentID = to, paymentID
		var end script
		if was == order.Pending { // a queued order has no units
			for _, it := range o.Items {
				if err := moveRow(tx, to.Movement(), it); err != nil {
					return nil, false, err
				}
			}
			end.ledger(s, to.Movement(), []order.Order{o}, nil, row.ReadAt)
		}
		if err := s.timers.Cancel(tx.Statement.Context, &end, timerOf(was), t.ID); err != nil {
			return nil, false, err
		}
		return o, true, s.run(tx, &end)
	})
	if err != nil {
		return order.Order{}, false, err
	}
	return o, changed, nil
}

func skusOf(o order.Order) []string {
	skus := make([]string, len(o.Items))
	for i, it := range o.Items {
		skus[i] = it.SKU
	}
	return skus
}

// Extend implements [order.Store]. A second extension looks like a retry of the first extension.
// So only a key helps when the reply to COMMIT was lost.
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
