package sqlstore

import (
	"gorm.io/gorm"
)

// conditional lets the row decide about each request.
func (b *transaction) conditional(tx *gorm.DB, sku string) error {
	for i, r := range b.requests {
		if !b.eligible(i) {
			continue
		}
		q := r.Order.Quantity(sku)
		available, err := b.takeUnits(tx, sku, q)
		if err != nil {
			return err
		}
		if available >= q {
			b.count(r)
		} else {
			b.short(i, sku, q, available)
		}
	}
	return nil
}

// takeUnits reserves q units of sku, and returns how many were available: less than q if it did not. An update
// that finds too few locks nothing, so units may come back before the level is read. Then it tries again, as
// a refusal has to be true of the level that it shows.
func (b *transaction) takeUnits(tx *gorm.DB, sku string, q int64) (available int64, err error) {
	for {
		changed, err := b.exec(tx, "UPDATE skus SET reserved = reserved + ?, version = version + 1 WHERE sku = ? AND on_hand - reserved >= ?", q, sku, q)
		if err != nil || changed > 0 {
			return q, err
		}
		row, err := readRow(tx, "*", sku, "")
		if available = row.OnHand - row.Reserved; err != nil || available < q {
			return available, err
		}
	}
}

// exec runs a statement that writes. If the driver can send more along with it, it also reads the time: when the statement had
// the lock of the row.
func (b *transaction) exec(tx *gorm.DB, text string, args ...any) (changed int64, err error) {
	if !b.dialect.scripts {
		r := tx.Exec(text, args...)
		return r.RowsAffected, r.Error
	}
	var row struct{ Changed, Now int64 }
	err = tx.Raw(text+"; SELECT ROW_COUNT() AS changed, "+b.dialect.present+" AS now", args...).Scan(&row).Error
	b.now = max(b.now, row.Now)
	return row.Changed, err
}
