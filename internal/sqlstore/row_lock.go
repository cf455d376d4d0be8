package sqlstore

import (
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// see notes what c is to be told of: the level that was read, before sold units go away with the
// COMMIT.
func (b *batch) see(c stock.Claim, level stock.Level, sold int64) {
	if c.Seen == nil || c.Write != stock.RowLock {
		return
	}
	b.tell = append(b.tell, func(committed bool) {
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
func (b *batch) lockedLevel(tx *gorm.DB, sku string) (stock.Level, error) {
	row, err := readSKU(tx, "*, "+b.dialect.present+" AS now", sku, b.dialect.forUpdate)
	b.now = max(b.now, row.Now)
	return row.level(), err
}
