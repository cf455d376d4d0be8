package sqlstore

import (
	"gorm.io/gorm"
)

// conditional has the row decide about each request.
func (t *transaction) conditional(tx *gorm.DB, sku string) error {
	for _, r := range t.requests {
		if !t.wants(r) {
			continue
		}
		q := r.Order.Quantity(sku)
		available, err := t.takeUnits(tx, sku, q)
		if err != nil {
			return err
		}
		if available >= q {
			t.count(r)
		} else {
			r.short(sku, q, available)
		}
	}
	return nil
}

// takeUnits reserves q units of sku, and returns how many were available: less than q if it reserved none, and q if it did. An update
// that finds too few units locks nothing, so units may be released before the level is read. Then takeUnits tries again:
// a refusal must be true of the level that it shows. If it needs no other round trip, the update also returns the
// time when it had the lock of the row.
func (t *transaction) takeUnits(tx *gorm.DB, sku string, q int64) (available int64, err error) {
	update, args := "UPDATE skus SET reserved = reserved + ?, version = version + 1 WHERE sku = ? AND on_hand - reserved >= ?", []any{q, sku, q}
	for {
		var done struct{ Changed, ReadAt int64 }
		if t.engine.Changed != "" {
			err = tx.Raw(t.within(update+t.engine.Changed), args...).Scan(&done).Error
			t.now = max(t.now, done.ReadAt)
		} else {
			r := tx.Exec(t.within(update), args...)
			done.Changed, err = r.RowsAffected, r.Error
		}
		if err != nil || done.Changed > 0 {
			return q, err
		}
		row, err := readRow(tx, "SELECT * FROM "+oneRowOf, sku)
		if available = row.OnHand - row.Reserved; err != nil || available < q {
			return available, err
		}
	}
}
