package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// errSegmentChanged says that a segment has less than it had when it was chosen. The order is placed
// again, and then has all segments locked.
var errSegmentChanged = fmt.Errorf("sqlstore: the segment was drained meanwhile: %w", stock.ErrBusy)

// readSegments reads how many units each segment of the SKUs has that are sold like that, and the time.
func (b *transaction) readSegments(db *gorm.DB) error {
	var skus []string
	for c := range b.claims() {
		if c.Update == stock.Segmented {
			skus = append(skus, c.SKU)
		}
	}
	b.free = make(map[string][]int64)
	if len(skus) == 0 {
		return nil
	}
	var rows []struct {
		SKU  string
		Free int64
		Now  int64
	}
	err := db.Raw("SELECT sku, on_hand - reserved AS free, "+b.dialect.now+" AS now FROM "+allSegments+
		" ORDER BY sku, segment", skus, skus).Scan(&rows).Error
	for _, r := range rows {
		b.free[r.SKU] = append(b.free[r.SKU], r.Free)
		b.now = r.Now
	}
	return err
}

// segmented takes an order's units of sku from one segment that had enough when they were read, and locks nothing else.
// If none had enough, or there are several orders, it takes them from as many as it needs. An order is refused only if
// all segments together had too few, in that read or while all are locked.
func (b *transaction) segmented(tx *gorm.DB, sku string) error {
	if b.takesAcross || len(b.requests) > 1 {
		return b.takeAcross(tx, sku)
	}
	r := b.requests[0]
	q, total := r.Order.Quantity(sku), int64(0)
	var enough []int
	for i, free := range b.free[sku] {
		if total += free; free >= q {
			enough = append(enough, i)
		}
	}
	switch {
	case total < q:
		b.short(0, sku, q, total)
		return nil
	case len(enough) == 0:
		return b.takeAcross(tx, sku)
	}
	// In turn, as orders that come together would often meet by chance.
	text, args := "UPDATE skus SET reserved = reserved + ?, version = version + 1 WHERE sku = ?", []any{q, sku}
	if i := enough[b.turn.Add(1)%uint64(len(enough))]; i > 0 {
		text, args = "UPDATE sku_segments SET reserved = reserved + ?, version = version + 1 WHERE sku = ? AND segment = ?", append(args, i)
	}
	res := tx.Exec(text+" AND on_hand - reserved >= ?", append(args, q)...)
	if res.Error == nil && res.RowsAffected == 0 {
		// Another one cannot be tried here: segments are locked in ascending order.
		return errSegmentChanged
	}
	b.count(r)
	return res.Error
}

// takeAcross locks all segments of sku, and takes what the orders want from any of them.
func (b *transaction) takeAcross(tx *gorm.DB, sku string) error {
	row, err := readRow(tx, "*", sku, b.dialect.forUpdate)
	if err != nil {
		return err
	}
	var others []segmentRow
	err = tx.Raw("SELECT * FROM sku_segments"+b.dialect.byKey+" WHERE sku = ? ORDER BY segment"+b.dialect.forUpdate, sku).Scan(&others).Error
	if err != nil {
		return err
	}
	total := row.OnHand - row.Reserved
	free, taken := []int64{total}, make([]int64, 1+len(others))
	for _, o := range others {
		free = append(free, o.OnHand-o.Reserved)
		total += o.OnHand - o.Reserved
	}
	for i, r := range b.requests {
		if !b.eligible(i) {
			continue
		}
		q := r.Order.Quantity(sku)
		if total < q {
			b.short(i, sku, q, total)
			continue
		}
		total -= q
		for j := range free {
			n := min(max(0, free[j]), q)
			free[j], taken[j], q = free[j]-n, taken[j]+n, q-n
		}
		b.count(r)
	}
	return applyParts(tx, b.dialect, stock.Reserve, sku, taken)
}
