package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// maxRows is how many rows one statement changes. SQLite allows 32,766 parameters.
const maxRows = 500

// Expire implements [order.Store]. The order's row, which is locked from the first statement on, decides what happens
// to an order. It skips rows that somebody else has locked. Then it waits for those of stock,
// before it locks any order.
func (s *Store) Expire(ctx context.Context, ids []string) ([]order.Expiry, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	e := expiration{
		Store: s, ids: slices.Sorted(slices.Values(ids)),
		found: make(map[string]order.Expiry, len(ids)), ended: make(map[string]*order.Order),
	}
	if err := s.repeating(ctx, e.run); err != nil {
		return nil, err
	}
	if err := e.wait(ctx); err != nil {
		return nil, err
	}
	found := make([]order.Expiry, len(ids))
	for i, id := range ids {
		found[i] = e.found[id]
		if found[i].Status == order.Expired {
			found[i].Ended = e.ended[id]
		}
	}
	return found, nil
}

const (
	orderBusy = 100 * time.Millisecond // until an order is tried again whose row is locked: it is being paid, or cancelled
	stockBusy = time.Second            // ... if it is the row of its stock, for which it could not wait
)

// expiration is the end of a batch of orders, in one transaction.
type expiration struct {
	*Store
	ids []string // ascending

	found   map[string]order.Expiry // by id; run sets what it reads again
	ended   map[string]*order.Order // those that a run has expired: the last one, or one whose reply was lost
	blocked map[string][]string     // by id, the SKUs whose rows are locked, ascending; set afresh by run
}

// run expires those of the orders that are due, and whose rows and stock no other transaction has locked.
func (e *expiration) run(tx *gorm.DB) (err error) {
	e.blocked = make(map[string][]string)
	rows, err := e.lock(tx)
	if err != nil {
		return err
	}
	var due []*order.Order
	var final []string
	for _, r := range rows {
		o := r.order(nil)
		e.found[o.ID] = order.Expiry{Status: o.Status}
		switch { // o shows a late PENDING row r as EXPIRED
		case o.Status == order.Pending: // not due
			e.found[o.ID] = order.Expiry{Status: o.Status, Timer: o.Timer()}
		case r.Status == string(order.Pending): // to expire now
			due = append(due, &o)
		default:
			final = append(final, o.ID)
		}
	}
	var returned []counter
	if len(due) > 0 {
		if due, err = e.lockStock(tx, due); err == nil {
			due, returned, err = e.lockCounters(tx, due)
		}
		if err != nil {
			return err
		}
	}
	for _, o := range due {
		final = append(final, o.ID)
	}
	if len(final) == 0 {
		return nil
	}
	end := script{}
	if len(due) > 0 {
		end.counters(e.Store, returned)
		e.expire(&end, due, rows[0].ReadAt)
	}
	if err := e.timers.Cancel(tx.Statement.Context, &end, order.ExpireTimer, final...); err != nil {
		return err
	}
	if err := e.Store.run(tx, &end); err != nil {
		return err
	}
	for some := range slices.Chunk(bySKU(due), maxRows) {
		if err := release(tx, some); err != nil {
			return err
		}
	}
	return nil
}

// lock locks the rows of the orders, and returns those that nobody else has locked.
func (e *expiration) lock(tx *gorm.DB) (rows []orderRow, err error) {
	read := "SELECT o.*, " + e.engine.Now + " AS read_at FROM orders o" + e.engine.ByKey + " WHERE id IN ? ORDER BY id" + e.engine.SkipLocked
	if err := tx.Raw(read, e.ids).Scan(&rows).Error; err != nil || len(rows) == len(e.ids) {
		return rows, err
	}
	had := make(map[string]bool, len(rows))
	for _, r := range rows {
		had[r.ID] = true
	}
	missing := slices.DeleteFunc(slices.Clone(e.ids), func(id string) bool { return had[id] })
	var locked []string
	if err := tx.Raw("SELECT id FROM orders WHERE id IN ?", missing).Scan(&locked).Error; err != nil {
		return nil, err
	}
	for _, id := range missing {
		e.found[id] = order.Expiry{}
	}
	for _, id := range locked {
		e.found[id] = order.Expiry{Again: orderBusy}
	}
	return rows, nil
}

// expire adds to end what ends the orders, which the transaction has found due at now, and records their
// units in the ledger.
func (e *expiration) expire(end *script, due []*order.Order, now int64) {
	ids, orders := make([]any, len(due)), make([]order.Order, len(due))
	for i, o := range due {
		ids[i], orders[i] = o.ID, *o
		e.ended[o.ID] = o
	}
	end.add("UPDATE orders SET status = ? WHERE id IN (?"+strings.Repeat(", ?", len(ids)-1)+")", append([]any{string(order.Expired)}, ids...)...)
	for some := range slices.Chunk(orders, maxRows) {
		end.ledger(e.Store, stock.Release, some, nil, now)
	}
}

// bySKU adds up the units of orders and returns one line per SKU, sorted.
func bySKU(orders []*order.Order) []lineRow {
	units := make(map[string]int64)
	for _, o := range orders {
		for _, it := range o.Items {
			units[it.SKU] += it.Quantity
		}
	}
	sums := make([]lineRow, 0, len(units))
	for _, sku := range slices.Sorted(maps.Keys(units)) {
		sums = append(sums, lineRow{SKU: sku, Quantity: units[sku]})
	}
	return sums
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
