package sqlstore

import "gorm.io/gorm"

// writeBack computes from the level that was read before the transaction. An update by another transaction since then
// is lost. The version grows with each change even so: it is the order of levels in events.
func (t *transaction) writeBack(tx *gorm.DB, sku string) error {
	const overwrite = "UPDATE skus SET reserved = ?, version = version + 1 WHERE sku = ?"
	level := t.takeSeen(sku)
	switch {
	case level.sold == 0:
		return nil
	case len(t.batches[0].Claims) > 1: // rows are locked in the order of their SKUs
		return tx.Exec(overwrite, level.Reserved, sku).Error
	}
	t.end.add(overwrite, level.Reserved, sku)
	return nil
}
