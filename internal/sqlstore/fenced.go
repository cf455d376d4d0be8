package sqlstore

import (
	"fmt"

	"example.com/shop/internal/stock"
)

// admit reports whether the holders of the fencing tokens of claims may write to the rows, which are locked. If a newer
// token, or the same number with another owner, has written to a row, admit returns a [*stock.FencedError]. It does the
// same if a row has another token offset than its claim. Then the token is from a service that has lost its data, and
// cannot be compared. After nil, the rows have accepted all tokens.
func (t *transaction) admit(claims ...stock.Claim) error {
	for _, c := range claims {
		row, found := t.locked[c.SKU]
		if !found {
			return fmt.Errorf("%w %q", stock.ErrNotFound, c.SKU)
		}
		if c.Update == stock.Fenced && (!c.Fence.Passes(row.Fence) || c.Base != row.Base) {
			return &stock.FencedError{Refused: c, Accepted: row.Fence, Base: row.Base}
		}
	}
	for _, c := range claims {
		if c.Update == stock.Fenced {
			t.locked[c.SKU].Fence = c.Fence
		}
	}
	return nil
}
