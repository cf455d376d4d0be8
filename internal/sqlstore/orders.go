package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Order implements [order.Store].
func (s *Store) Order(ctx context.Context, id, owner string) (order.Order, error) {
	o, err := s.readOrder(s.db.WithContext(ctx), order.Target{ID: id, Owner: owner}, "")
	if err != nil {
		return order.Order{}, s.translate(ctx, err)
	}
	return o, nil
}

// readOrder reads an order through db, which may be a transaction. A suffix that
// locks keeps others from changing the order until the transaction ends.
func (s *Store) readOrder(db *gorm.DB, t order.Target, suffix string) (order.Order, error) {
	var row orderRow
	r := db.Raw("SELECT o.*, "+s.dialect.now+" AS now FROM orders o WHERE id = ? AND ? IN ('', customer_id)"+suffix, t.ID, t.Owner).Scan(&row)
	if r.Error != nil {
		return order.Order{}, r.Error
	}
	if r.RowsAffected == 0 {
		return order.Order{}, fmt.Errorf("%w %q", order.ErrNotFound, t.ID)
	}
	var lines []lineRow
	if err := db.Raw("SELECT * FROM order_lines WHERE order_id = ? ORDER BY sku", t.ID).Scan(&lines).Error; err != nil {
		return order.Order{}, err
	}
	return row.order(lines), nil
}

// Settle implements [order.Store].
func (s *Store) Settle(ctx context.Context, t order.Target, to order.Status, paymentID string) (o order.Order, changed bool, err error) {
	var push func()
	err = s.answering(ctx, s.repeating, t.Once, func(tx *gorm.DB) (result any, done bool, err error) {
		push = func() {}
		was, err := s.leave(tx, t, to, paymentID)
		if err != nil {
			return nil, false, err
		}
		changed = was != ""
		if o, err = s.readOrder(tx, t, ""); err != nil || !changed {
			return nil, false, err
		}
		if was == order.Pending { // a queued order has no units
			if err := s.settleStock(tx, o, to.Movement()); err != nil {
				return nil, false, err
			}
		}
		push, err = s.unschedule(tx, timerOf(was), t.ID)
		return o, true, err
	})
	if err != nil {
		return order.Order{}, false, err
	}
	push()
	return o, changed, nil
}

// leave turns the order into to and returns the state that it was in, or nothing if to
// cannot be reached from there.
func (s *Store) leave(tx *gorm.DB, t order.Target, to order.Status, paymentID string) (was order.Status, err error) {
	from := []order.Status{order.Pending}
	if to == order.Cancelled {
		// What became pending between the first two looks is found by the third.
		from = []order.Status{order.Pending, order.Queued, order.Pending}
	}
	for _, was := range from {
		r := tx.Exec("UPDATE orders SET status = ?, payment_id = ? WHERE id = ? AND ? IN ('', customer_id) AND status = ? AND expires_at > "+s.dialect.now,
			string(to), paymentID, t.ID, t.Owner, string(was))
		if r.Error != nil || r.RowsAffected > 0 {
			return was, r.Error
		}
	}
	return "", nil
}

// settleStock moves the units of o, SKU by SKU in ascending order.
func (s *Store) settleStock(tx *gorm.DB, o order.Order, m stock.Movement) error {
	now, err := s.clock(tx)
	if err != nil {
		return err
	}
	entries := make([]ledgerRow, len(o.Items))
	for i, it := range o.Items {
		if err := s.move(tx, m, it); err != nil {
			return err
		}
		entries[i] = s.entry(m, it.SKU, o.ID, it.Quantity, now, dlock.Fence{})
	}
	return tx.Create(&entries).Error
}
