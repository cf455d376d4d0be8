package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// maxSKUs is how many SKUs one statement gives units back to. SQLite allows
// 32,766 parameters.
const maxSKUs = 500

// Expire implements [order.Store]. Whatever it does for an order is decided by
// the order's row, which it holds locked from the first statement on.
func (s *Store) Expire(ctx context.Context, ids []string) ([]order.Expiry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	e := expiration{Store: s, ids: slices.Sorted(slices.Values(ids))}
	if err := s.repeating(ctx, e.run); err != nil {
		return nil, err
	}
	e.push()
	found := make([]order.Expiry, len(ids))
	for i, id := range ids {
		found[i] = e.found[id]
	}
	return found, nil
}

// expiration is the end of a batch of orders, in one transaction.
type expiration struct {
	*Store
	ids []string // ascending, so that two batches never wait for each other

	found map[string]order.Expiry // set afresh by run
	push  func()                  // set afresh by run
}

func (e *expiration) run(tx *gorm.DB) (err error) {
	var rows []orderRow
	read := "SELECT o.*, " + e.dialect.now + " AS now FROM orders o WHERE id IN ? ORDER BY id" + e.dialect.forUpdate
	if err := tx.Raw(read, e.ids).Scan(&rows).Error; err != nil {
		return err
	}
	var due, final []string
	e.found = make(map[string]order.Expiry, len(rows))
	for _, r := range rows {
		o := r.order(nil)
		if o.Status == order.Pending {
			e.found[o.ID] = order.Expiry{Status: o.Status, Timer: o.Timer()}
			continue
		}
		e.found[o.ID] = order.Expiry{Status: o.Status}
		final = append(final, o.ID)
		if r.Status == string(order.Pending) {
			due = append(due, o.ID)
		}
	}
	// The stock rows come last, as everybody who buys the SKU waits for them.
	if len(due) > 0 {
		if err := e.expire(tx, due, rows[0].Now); err != nil {
			return err
		}
	}
	if e.push, err = e.unschedule(tx, final...); err != nil || len(due) == 0 {
		return err
	}
	return e.giveBack(tx, due)
}

// expire ends the orders, which the transaction has found due at now, and
// records their units in the ledger.
func (e *expiration) expire(tx *gorm.DB, due []string, now int64) error {
	r := tx.Exec("UPDATE orders SET status = ? WHERE id IN ? AND status = ? AND expires_at <= ?",
		string(order.Expired), due, string(order.Pending), now)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected != int64(len(due)) {
		return fmt.Errorf("sqlstore: %d of %d orders were due, though their rows are locked", r.RowsAffected, len(due))
	}
	onHand, reserved := stock.Release.Delta(1)
	return tx.Exec(`INSERT INTO ledger (sku, order_id, movement, quantity, on_hand, reserved, fence, instance, created_at)
		SELECT sku, order_id, ?, quantity, quantity * ?, quantity * ?, 0, ?, ? FROM order_lines WHERE order_id IN ?`,
		string(stock.Release), onHand, reserved, e.instance, now, due).Error
}

// giveBack adds the units of the orders up and releases them, in SKU order.
func (e *expiration) giveBack(tx *gorm.DB, due []string) error {
	var sums []lineRow
	sum := "SELECT sku, SUM(quantity) AS quantity FROM order_lines WHERE order_id IN ? GROUP BY sku ORDER BY sku"
	if err := tx.Raw(sum, due).Scan(&sums).Error; err != nil {
		return err
	}
	for some := range slices.Chunk(sums, maxSKUs) {
		if err := release(tx, some); err != nil {
			return err
		}
	}
	return nil
}

// release gives units of several SKUs back in one statement, relative to
// whatever their rows hold.
func release(tx *gorm.DB, sums []lineRow) error {
	args := make([]any, 0, 2*len(sums)+1)
	skus := make([]string, len(sums))
	for i, l := range sums {
		_, reserved := stock.Release.Delta(l.Quantity)
		args = append(args, l.SKU, reserved)
		skus[i] = l.SKU
	}
	r := tx.Exec("UPDATE skus SET reserved = reserved + CASE sku"+strings.Repeat(" WHEN ? THEN ?", len(sums))+
		" END, version = version + 1 WHERE sku IN ?", append(args, skus)...)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected != int64(len(sums)) {
		return fmt.Errorf("%w: %d of %q", stock.ErrNotFound, int64(len(sums))-r.RowsAffected, skus)
	}
	return nil
}

// Extend implements [order.Store].
func (s *Store) Extend(ctx context.Context, id string, by, life time.Duration) (o order.Order, changed bool, err error) {
	var (
		target time.Time // what a run has set, and perhaps committed
		push   func()
	)
	err = s.repeating(ctx, func(tx *gorm.DB) (err error) {
		changed, push = false, func() {}
		if o, err = s.readOrder(tx, id, s.dialect.forUpdate); err != nil || o.Status != order.Pending {
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
		if err := tx.Exec("UPDATE orders SET expires_at = ? WHERE id = ?", extended.ExpiresAt.UnixMicro(), id).Error; err != nil {
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
