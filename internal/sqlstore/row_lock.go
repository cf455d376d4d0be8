package sqlstore

import (
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// rowLock locks the row, and decides by what it holds.
func (b *transaction) rowLock(tx *gorm.DB, c stock.Claim) error {
	level, err := b.lockedLevel(tx, c.SKU)
	if err != nil {
		return err
	}
	sold := b.take(c.SKU, &level)
	if c.Seen != nil {
		b.noteLevel(c, level, sold)
	}
	if sold > 0 {
		b.end.add(overwrite, level.Reserved, level.SKU)
	}
	return nil
}

// noteLevel records what is to be sent to c: the level that was read, before sold units go away with the COMMIT.
func (b *transaction) noteLevel(c stock.Claim, level stock.Level, sold int64) {
	b.notify = append(b.notify, func(committed bool) {
		if sold > 0 && committed {
			level.Version++
		} else {
			level.Reserved -= sold
		}
		*c.Seen = level
	})
}

// lockedLevel locks the row of sku and reads it, and the time when it was locked: whatever was known of the time
// is older. From here to the end of the transaction nobody else can change the row.
func (b *transaction) lockedLevel(tx *gorm.DB, sku string) (stock.Level, error) {
	row, err := readRow(tx, "*, "+b.dialect.present+" AS now", sku, b.dialect.forUpdate)
	b.now = max(b.now, row.Now)
	return row.level(), err
}
