package sqlstore

import (
	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// fenced locks the row, refuses a fence that the row has outlived, and decides by what the row holds.
func (b *transaction) fenced(tx *gorm.DB, c stock.Claim) error {
	level, err := b.lockedLevel(tx, c.SKU)
	if err != nil {
		return err
	}
	if err := admit(c, level); err != nil {
		return err
	}
	if b.take(c.SKU, &level) > 0 {
		b.end.add("UPDATE skus SET reserved = ?, version = ?, fence = ?, fence_owner = ? WHERE sku = ?",
			level.Reserved, level.Version+1, int64(c.Fence.Token), c.Fence.Owner, level.SKU)
	}
	return nil
}

// admit reports whether the holder of the fence of c may write to the row, which is locked and has level. If a newer
// fence, or the same number with another owner, has written to the row, admit returns a [*stock.FencedError]. It does
// the same if the row has another token offset than c. Then c's fence is from a service that has lost its data, and
// cannot be compared.
func admit(c stock.Claim, level stock.Level) error {
	if c.Fence.Passes(level.Fence) && c.Base == level.Base {
		return nil
	}
	return &stock.FencedError{Refused: c, Accepted: level.Fence, Base: level.Base}
}
