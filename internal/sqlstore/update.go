package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// reserve changes the rows of all claims.
func (b *transaction) reserve(tx *gorm.DB) error {
	if b.shared() {
		return b.reserveShared(tx)
	}
	for _, c := range b.batches[0].Claims {
		if err := b.update(tx, c); err != nil {
			return err
		}
	}
	return nil
}

// update changes the row that c claims by the sum of the requests, with the update of its strategy. It marks the
// requests that are short of units. Each update has a file of its own.
func (b *transaction) update(tx *gorm.DB, c stock.Claim) error {
	switch c.Update {
	case stock.WriteBack:
		return b.writeBack(tx, c.SKU)
	case stock.Version:
		return b.version(tx, c.SKU)
	case stock.Conditional:
		return b.conditional(tx, c.SKU)
	case stock.RowLock:
		return b.rowLock(tx, c)
	case stock.Fenced:
		return b.fenced(tx, c)
	}
	return fmt.Errorf("sqlstore: no write %d", c.Update)
}

// take reserves in level what the requests want of sku, each all or nothing, and returns how many units that is. With
// several claims there is one request. If a later SKU of it is short, the rollback releases these units.
func (b *transaction) take(sku string, level *stock.Level) (units int64) {
	for i, r := range b.requests {
		if !b.eligible(i) {
			continue
		}
		if q := r.Order.Quantity(sku); level.Available() >= q {
			level.Reserved += q
			units += q
			b.count(r)
		} else {
			b.short(i, sku, q, level.Available())
		}
	}
	return units
}

func (b *transaction) short(request int, sku string, wanted, available int64) {
	s := stock.Shortage{SKU: sku, Requested: wanted, Available: max(0, available)}
	b.shortages[request] = append(b.shortages[request], s)
}
