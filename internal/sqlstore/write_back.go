package sqlstore

import "gorm.io/gorm"

// overwrite stores what was computed from a level, whatever the row holds by now. Its version grows with each change even so, as it is the
// order of levels in events.
const overwrite = "UPDATE skus SET reserved = ?, version = version + 1 WHERE sku = ?"

// writeBack computes from the level that was read before the transaction. An update by another transaction since then
// is lost.
func (b *transaction) writeBack(tx *gorm.DB, sku string) error {
	level := b.seen[sku]
	switch {
	case b.take(sku, &level) == 0:
		return nil
	case len(b.batches[0].Claims) > 1: // rows are locked in the order of their SKUs
		return tx.Exec(overwrite, level.Reserved, sku).Error
	}
	b.end.add(overwrite, level.Reserved, sku)
	return nil
}
