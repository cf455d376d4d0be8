package sqlstore

import (
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// rowLock locks the row, and decides by what the row holds. A [stock.Fenced] claim must have a fencing token that the row
// accepts. From the lock to the end of the transaction no other transaction can change the row. The time when it was locked is later
// than any time that was read before.
func (t *transaction) rowLock(tx *gorm.DB, c stock.Claim) error {
	row, err := readRow(tx, t.within(t.engine.Locked("*", oneRowOf+t.engine.ForUpdate)), c.SKU)
	if err != nil {
		return err
	}
	l := &level{Level: row.level()}
	t.locked[c.SKU], t.now = l, max(t.now, row.ReadAt)
	if err := t.admit(c); err != nil {
		return err
	}
	t.take(map[string]*level{c.SKU: l})
	if l.sold > 0 {
		t.end.add("UPDATE skus SET reserved = ?, version = version + 1, fence = ?, fence_owner = ? WHERE sku = ?",
			l.Reserved, int64(l.Fence.Token), l.Fence.Owner, c.SKU)
	}
	return nil
}
