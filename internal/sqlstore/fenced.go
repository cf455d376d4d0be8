package sqlstore

import (
	"example.com/shop/internal/stock"
)

// admit reports whether the holder of the fence of c may write to the row, which is locked and says
// level. A row that a newer fence has written to, or the same number with another owner, refuses that
// with [*stock.FencedError], and so does one that counts from another base than c: that fence was counted
// by a service that has lost its data, and says nothing about those of now.
func admit(c stock.Claim, level stock.Level) error {
	if c.Fence.Passes(level.Fence) && c.Base == level.Base {
		return nil
	}
	return &stock.FencedError{Refused: c, Accepted: level.Fence, Base: level.Base}
}
