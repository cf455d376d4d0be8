package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// compareAndSet stores what was computed from l if the row still has its
// version.
func compareAndSet(tx *gorm.DB, l stock.Level) error {
	r := tx.Exec("UPDATE skus SET reserved = ?, version = ? WHERE sku = ? AND version = ?", l.Reserved, l.Version+1, l.SKU, l.Version)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected == 0 {
		return fmt.Errorf("%w: %q", stock.ErrConflict, l.SKU)
	}
	return nil
}
