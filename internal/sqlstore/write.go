package sqlstore

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
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
		if q := quantity(r, c.SKU); level.Available() >= q {
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

// lockedLevel locks the row of sku and reads it, and the time when it was locked: whatever was known of the time
// is older. From here to the end of the transaction nobody else can change the row.
func (b *batch) lockedLevel(tx *gorm.DB, sku string) (stock.Level, error) {
	row, err := readSKU(tx, "*, "+b.dialect.present+" AS now", sku, b.dialect.forUpdate)
	b.now = max(b.now, row.Now)
	return row.level(), err
}

// readLevel reads the row of sku in tx.
func readLevel(tx *gorm.DB, sku string) (stock.Level, error) {
	row, err := readSKU(tx, "*", sku, "")
	return row.level(), err
}

// readSKU reads the row of sku, and adds its segments to it if it has any.
func readSKU(tx *gorm.DB, columns, sku, suffix string) (skuRow, error) {
	row, err := readRow(tx, columns, sku, suffix)
	if err != nil || row.Segments == 0 {
		return row, err
	}
	rows := []skuRow{row}
	err = addUp(tx, rows)
	return rows[0], err
}

func readRow(tx *gorm.DB, columns, sku, suffix string) (row skuRow, err error) {
	r := tx.Raw("SELECT "+columns+" FROM skus WHERE sku = ?"+suffix, sku).Scan(&row)
	if r.Error == nil && r.RowsAffected == 0 {
		return skuRow{}, fmt.Errorf("%w %q", stock.ErrNotFound, sku)
	}
	return row, r.Error
}

// writeBack stores what was computed from a level, whatever the row holds by now.
const writeBack = "UPDATE skus SET reserved = ?, version = ? WHERE sku = ?"

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
		available, err := takeUnits(tx, sku, q)
		if err != nil {
			return err
		}
		if available >= q {
			b.count(r)
		} else {
			b.short(i, sku, q, available)
		}
	}
	return nil
}

// takeUnits reserves q units of sku, and returns how many were available: less than q if it did not. An update
// that finds too few locks nothing, so units may come back before the level is read. Then it tries again, as
// a refusal has to be true of the level that it shows.
func takeUnits(tx *gorm.DB, sku string, q int64) (available int64, err error) {
	for {
		r := tx.Exec(`UPDATE skus SET reserved = reserved + ?, version = version + 1
			WHERE sku = ? AND on_hand - reserved >= ?`, q, sku, q)
		if r.Error != nil || r.RowsAffected > 0 {
			return q, r.Error
		}
		row, err := readRow(tx, "*", sku, "")
		if available = row.OnHand - row.Reserved; err != nil || available < q {
			return available, err
		}
	}
}

// moveRow applies m to the row of sku, relative to whatever it holds.
func moveRow(tx *gorm.DB, m stock.Movement, it order.Item) error {
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
