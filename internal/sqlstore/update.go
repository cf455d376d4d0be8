package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// reserve reserves the units of all requests in the rows of their SKUs. It records in the requests which units they are
// short of. Each update has a file of its own.
func (t *transaction) reserve(tx *gorm.DB) (err error) {
	if t.together {
		return t.reserveShared(tx)
	}
	for _, c := range t.batches[0].Claims {
		switch c.Update {
		case stock.WriteBack:
			err = t.writeBack(tx, c.SKU)
		case stock.Version:
			err = t.version(tx, c.SKU)
		case stock.Conditional:
			err = t.conditional(tx, c.SKU)
		case stock.RowLock, stock.Fenced:
			err = t.rowLock(tx, c)
		default:
			err = fmt.Errorf("sqlstore: no update %d", c.Update)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take reserves in levels, which are by SKU, what each request wants of these SKUs: all or nothing. A request for more SKUs
// has a transaction of its own, and the rollback releases the units if it lacks units of another SKU.
func (t *transaction) take(levels map[string]*level) {
	for _, r := range t.requests {
		if !t.wants(r) {
			continue
		}
		short := false
		for _, it := range r.Order.Items {
			if l := levels[it.SKU]; l != nil && l.Available() < it.Quantity {
				r.short(it.SKU, it.Quantity, l.Available())
				short = true
			}
		}
		if short {
			continue
		}
		for _, it := range r.Order.Items {
			if l := levels[it.SKU]; l != nil {
				l.Reserved += it.Quantity
				l.sold += it.Quantity
			}
		}
		t.count(r)
	}
}

// takeSeen reserves units of sku in the level that was read before the transaction.
func (t *transaction) takeSeen(sku string) *level {
	l := &level{Level: t.seen[sku]}
	t.take(map[string]*level{sku: l})
	return l
}
