package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// reserve changes the row that c claims by what the requests want of it, in
// the way that c names, and notes the requests that it is short for.
func (b *batch) reserve(tx *gorm.DB, c stock.Claim) error {
	if c.Write == stock.Conditional {
		return b.conditional(tx, c.SKU)
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
		if q := quantity(r, c.SKU); level.Available() >= q {
			level.Reserved += q
			b.count(r)
		} else {
			b.short(i, c.SKU, q, level.Available())
		}
	}
	if level.Reserved == wanted {
		return nil
	}
	if c.Write == stock.Version {
		return compareAndSet(tx, level)
	}
	return writeBack(tx, level)
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
		return readLevel(tx, c.SKU, b.dialect.forUpdate)
	case stock.Fenced:
		if err := claim(tx, c.SKU, c.Fence); err != nil {
			return stock.Level{}, err
		}
		return readLevel(tx, c.SKU, "")
	default:
		return stock.Level{}, fmt.Errorf("sqlstore: no write %d", c.Write)
	}
}

// claim takes the row for the holder of f. From here to the end of the
// transaction nobody else can change it. A row that a newer fence has claimed,
// or the same number with another owner, is refused with [dlock.ErrFenced].
func claim(tx *gorm.DB, sku string, f dlock.Fence) error {
	r := tx.Exec(`UPDATE skus SET fence = ?, fence_owner = ?
		WHERE sku = ? AND (fence < ? OR (fence = ? AND fence_owner = ?))`,
		int64(f.Token), f.Owner, sku, int64(f.Token), int64(f.Token), f.Owner)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected > 0 {
		return nil
	}
	l, err := readLevel(tx, sku, "")
	if err != nil {
		return err
	}
	return &stock.FencedError{SKU: sku, Accepted: l.Fence}
}

// readLevel reads the row of sku in tx.
func readLevel(tx *gorm.DB, sku, suffix string) (stock.Level, error) {
	var row skuRow
	r := tx.Raw("SELECT * FROM skus WHERE sku = ?"+suffix, sku).Scan(&row)
	if r.Error != nil {
		return stock.Level{}, r.Error
	}
	if r.RowsAffected == 0 {
		return stock.Level{}, fmt.Errorf("%w %q", stock.ErrNotFound, sku)
	}
	return row.level(), nil
}

// writeBack stores what was computed from l, whatever the row holds by now.
func writeBack(tx *gorm.DB, l stock.Level) error {
	return tx.Exec("UPDATE skus SET reserved = ?, version = ? WHERE sku = ?", l.Reserved, l.Version+1, l.SKU).Error
}

// compareAndSet stores what was computed from l if the row still has its
// version.
func compareAndSet(tx *gorm.DB, l stock.Level) error {
	r := tx.Exec("UPDATE skus SET reserved = ?, version = ? WHERE sku = ? AND version = ?", l.Reserved, l.Version+1, l.SKU, l.Version)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected == 0 {
		return fmt.Errorf("%w: %q", stock.ErrConflict, l.SKU)
	}
	return nil
}

// conditional lets the row decide about each request.
func (b *batch) conditional(tx *gorm.DB, sku string) error {
	for i, r := range b.requests {
		if !b.stands(i) {
			continue
		}
		q := quantity(r, sku)
		res := tx.Exec(`UPDATE skus SET reserved = reserved + ?, version = version + 1
			WHERE sku = ? AND on_hand - reserved >= ?`, q, sku, q)
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected > 0 {
			b.count(r)
			continue
		}
		level, err := readLevel(tx, sku, "")
		if err != nil {
			return err
		}
		b.short(i, sku, q, level.Available())
	}
	return nil
}

// move applies m to the row of sku, relative to whatever it holds.
func move(tx *gorm.DB, m stock.Movement, it order.Item) error {
	onHand, reserved := m.Delta(it.Quantity)
	r := tx.Exec("UPDATE skus SET on_hand = on_hand + ?, reserved = reserved + ?, version = version + 1 WHERE sku = ?",
		onHand, reserved, it.SKU)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected == 0 {
		return fmt.Errorf("%w %q", stock.ErrNotFound, it.SKU)
	}
	return nil
}
