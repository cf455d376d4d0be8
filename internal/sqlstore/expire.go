package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// maxRows is how many rows one statement changes. SQLite allows 32,766 parameters.
const maxRows = 500

// Expire implements [order.Store]. Whatever it does for an order is decided by
// the order's row, which it holds locked from the first statement on.
func (s *Store) Expire(ctx context.Context, ids []string) ([]order.Expiry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	e := expiration{Store: s, ids: slices.Sorted(slices.Values(ids)), ended: make(map[string]*order.Order)}
	if err := s.repeating(ctx, e.run); err != nil {
		return nil, err
	}
	e.push()
	found := make([]order.Expiry, len(ids))
	for i, id := range ids {
		found[i] = e.found[id]
		if found[i].Status == order.Expired {
			found[i].Ended = e.ended[id]
		}
	}
	return found, nil
}

// expiration is the end of a batch of orders, in one transaction.
type expiration struct {
	*Store
	ids []string // ascending, so that two batches never wait for each other

	found map[string]order.Expiry // set afresh by run
	ended map[string]*order.Order // those that a run has expired: the last one, or one whose reply was lost
	push  func()                  // set afresh by run
}

func (e *expiration) run(tx *gorm.DB) (err error) {
	var rows []orderRow
	read := "SELECT o.*, " + e.dialect.now + " AS now FROM orders o WHERE id IN ? ORDER BY id" + e.dialect.forUpdate
	if err := tx.Raw(read, e.ids).Scan(&rows).Error; err != nil {
		return err
	}
	var due []*order.Order
	var final []string
	e.found = make(map[string]order.Expiry, len(rows))
	for _, r := range rows {
		o := r.order(nil)
		if o.Status == order.Pending {
			e.found[o.ID] = order.Expiry{Status: o.Status, Timer: o.Timer()}
			continue
		}
		e.found[o.ID] = order.Expiry{Status: o.Status}
		final = append(final, o.ID)
		if r.Status == string(order.Pending) {
			due = append(due, &o)
		}
	}
	var lines []lineRow
	if len(due) > 0 {
		if lines, err = e.expire(tx, due, rows[0].Now); err != nil {
			return err
		}
	}
	if e.push, err = e.unschedule(tx, order.ExpireTimer, final...); err != nil {
		return err
	}
	// The stock rows come last, as everybody who buys the SKU waits for them.
	return e.release(tx, bySKU(lines))
}

// expire ends the orders, which the transaction has found due at now, records
// their units in the ledger and returns their lines.
func (e *expiration) expire(tx *gorm.DB, due []*order.Order, now int64) (lines []lineRow, err error) {
	ids := make([]string, len(due))
	ended := make(map[string]*order.Order, len(due))
	for i, o := range due {
		ids[i], ended[o.ID] = o.ID, o
	}
	r := tx.Exec("UPDATE orders SET status = ? WHERE id IN ? AND status = ? AND expires_at <= ?",
		string(order.Expired), ids, string(order.Pending), now)
	if r.Error != nil {
		return nil, r.Error
	}
	if r.RowsAffected != int64(len(due)) {
		return nil, fmt.Errorf("sqlstore: %d of %d orders were due, though their rows are locked", r.RowsAffected, len(due))
	}
	if err := tx.Raw("SELECT * FROM order_lines"+e.dialect.byKey+" WHERE order_id IN ?", ids).Scan(&lines).Error; err != nil {
		return nil, err
	}
	slices.SortFunc(lines, func(a, b lineRow) int { return strings.Compare(a.SKU, b.SKU) })
	ledger := make([]ledgerRow, len(lines))
	for i, l := range lines {
		o := ended[l.OrderID]
		o.Items = append(o.Items, order.Item{SKU: l.SKU, Quantity: l.Quantity})
		ledger[i] = e.entry(stock.Release, l.SKU, l.OrderID, l.Quantity, now, dlock.Fence{})
	}
	maps.Copy(e.ended, ended)
	return lines, tx.CreateInBatches(&ledger, maxRows).Error
}

// bySKU adds up the units of lines and returns one line per SKU, sorted.
func bySKU(lines []lineRow) []lineRow {
	units := make(map[string]int64)
	for _, l := range lines {
		units[l.SKU] += l.Quantity
	}
	sums := make([]lineRow, 0, len(units))
	for _, sku := range slices.Sorted(maps.Keys(units)) {
		sums = append(sums, lineRow{SKU: sku, Quantity: units[sku]})
	}
	return sums
}

// release gives units of several SKUs back, which it locks in the order of sums.
func (e *expiration) release(tx *gorm.DB, sums []lineRow) error {
	skus := make([]string, len(sums))
	for i, l := range sums {
		skus[i] = l.SKU
	}
	kinds, err := e.kindsOf(tx, skus...)
	if err != nil {
		return err
	}
	for from := 0; from < len(sums); {
		l, to := sums[from], from
		if rows := kinds[l.SKU].segments + 1; rows > 1 {
			parts := even(l.Quantity, rows, int(e.turn.Add(1)%uint64(rows)))
			if err := shift(tx, e.dialect, stock.Release, l.SKU, parts); err != nil {
				return err
			}
			from++
			continue
		}
		for to < len(sums) && to < from+maxRows && kinds[sums[to].SKU].segments == 0 {
			to++
		}
		if err := release(tx, sums[from:to]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// release gives units of several SKUs back in one statement, relative to
// whatever their rows hold.
func release(tx *gorm.DB, sums []lineRow) error {
	args := make([]any, 0, 2*len(sums)+1)
	skus := make([]string, len(sums))
	for i, l := range sums {
		_, reserved := stock.Release.Delta(l.Quantity)
		args = append(args, l.SKU, reserved)
		skus[i] = l.SKU
	}
	r := tx.Exec("UPDATE skus SET reserved = reserved + CASE sku"+strings.Repeat(" WHEN ? THEN ?", len(sums))+
		" END, version = version + 1 WHERE sku IN ?", append(args, skus)...)
	if r.Error != nil {
		return r.Error
	}
	if r.RowsAffected != int64(len(sums)) {
		return fmt.Errorf("%w: %d of %q", stock.ErrNotFound, int64(len(sums))-r.RowsAffected, skus)
	}
	return nil
}
