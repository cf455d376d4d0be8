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
		available, err := takeUnits(tx, sku, q)
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
func takeUnits(tx *gorm.DB, sku string, q int64) (available int64, err error) {
	for {
		r := tx.Exec(`UPDATE skus SET reserved = reserved + ?, version = version + 1
			WHERE sku = ? AND on_hand - reserved >= ?`, q, sku, q)
		if r.Error != nil || r.RowsAffected > 0 {
			return q, r.Error
		}
		row, err := readRow(tx, "*", sku, "")
		if available = row.OnHand - row.Reserved; err != nil || available < q {
			return available, err
		}
	}
}
