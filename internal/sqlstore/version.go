package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// version computes from the level that was read before the transaction, and stores the result if the row still has the
// version of that level.
func (t *transaction) version(tx *gorm.DB, sku string) error {
	level := t.takeSeen(sku)
	if level.sold == 0 {
		return nil
	}
	r := tx.Exec("UPDATE skus SET reserved = ?, version = ? WHERE sku = ? AND version = ?", level.Reserved, level.Version+1, sku, level.Version)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected == 0 {
		return fmt.Errorf("%w: %q", stock.ErrConflict, sku)
	}
	return nil
}
