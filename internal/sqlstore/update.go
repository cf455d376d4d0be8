package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// reserve changes the row that c claims by what the requests want of it, in
// the way that c names, and notes the requests that it is short for.
func (b *batch) reserve(tx *gorm.DB, c stock.Claim) error {
	if c.Write == stock.Conditional {
		return b.conditional(tx, c.SKU)
	}
	if c.Write == stock.Segmented {
		return b.segmented(tx, c.SKU)
	}
	level, err := b.level(tx, c)
	if err != nil {
		return err
	}
	wanted := level.Reserved
	for i, r := range b.requests {
		if !b.stands(i) {
			continue
		}
		if q := r.Order.Quantity(c.SKU); level.Available() >= q {
			level.Reserved += q
			b.count(r)
		} else {
			b.short(i, c.SKU, q, level.Available())
		}
	}
	b.see(c, level, level.Reserved-wanted)
	if level.Reserved == wanted {
		return nil
	}
	switch {
	case c.Write == stock.Version:
		return compareAndSet(tx, level)
	case c.Write == stock.WriteBack && len(b.claims) > 1: // rows are locked in the order of their SKUs
		return tx.Exec(writeBack, level.Reserved, level.Version+1, level.SKU).Error
	}
	if c.Write == stock.Fenced {
		b.end.add("UPDATE skus SET reserved = ?, version = ?, fence = ?, fence_owner = ? WHERE sku = ?",
			level.Reserved, level.Version+1, int64(c.Fence.Token), c.Fence.Owner, level.SKU)
		return nil
	}
	b.end.add(writeBack, level.Reserved, level.Version+1, level.SKU)
	return nil
}

func (b *batch) short(request int, sku string, wanted, available int64) {
	s := stock.Shortage{SKU: sku, Requested: wanted, Available: max(0, available)}
	b.shortages[request] = append(b.shortages[request], s)
}

// level returns the level on which to decide: the one read before the
// transaction, or the row as it stands, protected until the commit.
func (b *batch) level(tx *gorm.DB, c stock.Claim) (stock.Level, error) {
	switch c.Write {
	case stock.WriteBack, stock.Version:
		return b.seen[c.SKU], nil
	case stock.RowLock:
		return b.lockedLevel(tx, c.SKU)
	case stock.Fenced:
		level, err := b.lockedLevel(tx, c.SKU)
		if err == nil {
			err = admit(c, level)
		}
		return level, err
	default:
		return stock.Level{}, fmt.Errorf("sqlstore: no write %d", c.Write)
	}
}
