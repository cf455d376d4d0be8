package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Order implements [order.Store].
func (s *Store) Order(ctx context.Context, id string) (order.Order, error) {
	o, err := s.readOrder(s.db.WithContext(ctx), id)
	if err != nil {
		return order.Order{}, s.translate(ctx, err)
	}
	return o, nil
}

// readOrder reads an order through db, which may be a transaction.
func (s *Store) readOrder(db *gorm.DB, id string) (order.Order, error) {
	var row orderRow
	r := db.Raw("SELECT o.*, "+s.dialect.now+" AS now FROM orders o WHERE id = ?", id).Scan(&row)
	if r.Error != nil {
		return order.Order{}, r.Error
	}
	if r.RowsAffected == 0 {
		return order.Order{}, fmt.Errorf("%w %q", order.ErrNotFound, id)
	}
	var lines []lineRow
	if err := db.Raw("SELECT * FROM order_lines WHERE order_id = ? ORDER BY sku", id).Scan(&lines).Error; err != nil {
		return order.Order{}, err
	}
	return row.order(lines), nil
}

// Settle implements [order.Store].
func (s *Store) Settle(ctx context.Context, id string, to order.Status, paymentID string) (o order.Order, changed bool, err error) {
	settle := func(tx *gorm.DB) (err error) {
		r := tx.Exec("UPDATE orders SET status = ?, payment_id = ? WHERE id = ? AND status = ? AND expires_at > "+s.dialect.now,
			string(to), paymentID, id, string(order.Pending))
		if r.Error != nil {
			return r.Error
		}
		changed = r.RowsAffected > 0
		if o, err = s.readOrder(tx, id); err != nil || !changed {
			return err
		}
		return s.settleStock(tx, o, to.Movement())
	}
	err = s.inTx(ctx, settle)
	for lost := 0; errors.Is(err, order.ErrOutcomeUnknown) && lost < maxRetries; lost++ {
		// Once more: if it was done, the order is found settled, after its row is free.
		if again := s.inTx(ctx, settle); again == nil || errors.Is(again, order.ErrOutcomeUnknown) {
			err = again
		} else {
			return order.Order{}, false, fmt.Errorf("%w: %w", err, again)
		}
	}
	return o, changed, err
}

// settleStock moves the units of o, SKU by SKU in ascending order.
func (s *Store) settleStock(tx *gorm.DB, o order.Order, m stock.Movement) error {
	var now int64
	if err := tx.Raw("SELECT " + s.dialect.now).Scan(&now).Error; err != nil {
		return err
	}
	entries := make([]ledgerRow, len(o.Items))
	for i, it := range o.Items {
		if err := move(tx, m, it); err != nil {
			return err
		}
		entries[i] = s.entry(m, it.SKU, o.ID, it.Quantity, now, dlock.Fence{})
	}
	return tx.Create(&entries).Error
}
