package sqlstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// perPurge is how many orders a transaction deletes.
const perPurge = 200

// PurgeOrders deletes orders that are final, with their ledger entries, if their time to be placed or paid ended more than age ago
// by the database's clock. It returns how many. It audits first, and keeps each order that has an entry after the checkpoint of a SKU, an entry
// that a webhook has not got, or entries that do not add up to its status. It also keeps paid orders of SKUs with a purchase limit, which count.
//
// The first entry of a SKU, its RESTOCK, takes over what paid orders have removed from on_hand. So no sum of the ledger changes, and its
// quantity less its on_hand is the number of units that deleted orders have bought. The rows of SKUs stay as they are.
//
// It blocks until that is done or ctx ends. After each transaction it pauses for as long as the transaction took. hold begins each
// transaction, and its error ends them; with a nil one several may delete at once. After an error, deleted orders stay deleted.
func (s *Store) PurgeOrders(ctx context.Context, hold func(context.Context, timeout.Tx) error, age time.Duration) (n int64, err error) {
	if _, err := s.AuditRecent(ctx, ""); err != nil {
		return 0, err
	}
	restocks := make(map[string]int64)
	for _, status := range []order.Status{order.Confirmed, order.Cancelled, order.Expired, order.Rejected} {
		for last := (orderRow{Status: string(status)}); ; {
			old, err := s.finalBefore(ctx, last, age)
			if err != nil || len(old) == 0 {
				if err != nil {
					return n, err
				}
				break
			}
			last.ID, last.ExpiresAt = old[len(old)-1].ID, old[len(old)-1].ExpiresAt
			began := time.Now()
			var deleted int64
			err = s.inTx(ctx, func(tx *gorm.DB) (err error) {
				if hold != nil {
					if err := hold(ctx, tx.Statement.ConnPool); err != nil {
						return err
					}
				}
				deleted, err = s.purge(tx, slices.Collect(maps.Keys(byID(old))), restocks)
				return err
			})
			if err != nil {
				return n, err
			}
			n += deleted
			if !backoff.Sleep(ctx, time.Since(began)) {
				return n, context.Cause(ctx)
			}
		}
	}
	return n, nil
}

// finalBefore returns orders that have the status of last, follow it by the end of their time, and ended more than age ago. Paid orders
// of SKUs with a purchase limit are not among them.
func (s *Store) finalBefore(ctx context.Context, last orderRow, age time.Duration) (rows []orderRow, err error) {
	limited := ""
	if last.Status == string(order.Confirmed) {
		limited = " AND NOT EXISTS (SELECT 1 FROM order_lines ol JOIN skus s ON s.sku = ol.sku WHERE ol.order_id = orders.id AND s.purchase_limit > 0)"
	}
	err = s.retrying(ctx, func() error {
		rows = nil
		return s.db.WithContext(ctx).Raw("SELECT id, expires_at FROM orders"+s.engine.Index("orders_status")+
			" WHERE status = ? AND expires_at < "+s.engine.Now+" - ? AND expires_at >= ? AND (expires_at > ? OR id > ?)"+limited+" ORDER BY expires_at, id LIMIT ?",
			last.Status, age.Microseconds(), last.ExpiresAt, last.ExpiresAt, last.ID, perPurge).Scan(&rows).Error
	})
	return rows, err
}

// purge deletes those orders that no other transaction has locked, and that may go. restocks are the first entries of SKUs, by SKU,
// as far as they are known; a SKU keeps it.
func (s *Store) purge(tx *gorm.DB, ids []string, restocks map[string]int64) (deleted int64, err error) {
	var rows []orderRow
	if err := tx.Raw("SELECT id FROM orders o"+s.engine.ByKey+" WHERE id IN ? ORDER BY id"+s.engine.SkipLocked, ids).Scan(&rows).Error; err != nil || len(rows) == 0 {
		return 0, err
	}
	items, err := s.settledLines(tx, slices.Collect(maps.Keys(byID(rows))))
	if err != nil {
		return 0, err
	}
	for _, l := range slices.Concat(slices.Collect(maps.Values(items))...) {
		if restocks[l.SKU] == 0 {
			if restocks[l.SKU], err = s.restock(tx, l.SKU); err != nil {
				return 0, err
			}
		}
	}
	var end script
	bought := make(map[int64]int64) // by the first entry of the SKU
	// A statement for each row: MariaDB tends to read, lock and wait for all rows of a small table if it looks for several.
	for _, id := range slices.Sorted(maps.Keys(items)) {
		if slices.ContainsFunc(items[id], func(l settledLine) bool { return restocks[l.SKU] == 0 || !l.isDone() }) {
			continue
		}
		deleted++
		for _, l := range items[id] {
			bought[restocks[l.SKU]] += l.bought()
			end.add("DELETE FROM ledger WHERE id BETWEEN ? AND ? AND order_id = ? AND sku = ?", l.First, l.Last, id, l.SKU)
			end.add("DELETE FROM order_lines WHERE order_id = ? AND sku = ?", id, l.SKU)
		}
		end.add("DELETE FROM orders WHERE id = ?", id)
	}
	for _, entry := range slices.Sorted(maps.Keys(bought)) {
		end.add("UPDATE ledger SET on_hand = on_hand - ? WHERE id = ?", bought[entry], entry)
	}
	return deleted, s.run(tx, &end)
}

// restock returns the first entry of a SKU, which is its RESTOCK; 0 if it has none.
func (s *Store) restock(tx *gorm.DB, sku string) (id int64, err error) {
	var first struct {
		ID            int64
		SKU, Movement string
	}
	// With sku = ? PostgreSQL would read the ledger from its beginning, in the order of id.
	err = tx.Raw("SELECT id, sku, movement FROM ledger"+s.engine.Index("ledger_sku")+" WHERE sku >= ? ORDER BY sku, id LIMIT 1", sku).Scan(&first).Error
	if first.SKU != sku || first.Movement != string(stock.Restock) {
		return 0, err
	}
	return first.ID, err
}

// settledLine is an item of an order that is final, with what its ledger entries add up to.
type settledLine struct {
	OrderID, SKU, Status string
	Quantity, Limited    int64
	RightTo              int64 // the checkpoint of the SKU, or what a webhook has got, if less; 0: there is none
	First, Last          int64 // entries of the order
	OnHand, Reserved     int64 // their sums
}

// bought returns the units that were paid for.
func (l settledLine) bought() int64 {
	if l.Status == string(order.Confirmed) {
		return l.Quantity
	}
	return 0
}

// isDone reports whether all invariants hold without the item.
func (l settledLine) isDone() bool {
	return l.RightTo > 0 && l.Last <= l.RightTo && l.OnHand == -l.bought() && l.Reserved == 0 &&
		(l.bought() == 0 || l.Limited == 0)
}

// settledLines returns the items of orders by their ids.
func (s *Store) settledLines(tx *gorm.DB, ids []string) (items map[string][]settledLine, err error) {
	var lines []settledLine
	err = tx.Raw("SELECT ol.order_id, ol.sku, o.status, ol.quantity, s.purchase_limit AS limited, COALESCE(CASE WHEN w.ledger_id < a.ledger_id THEN w.ledger_id ELSE a.ledger_id END, 0) AS right_to,"+
		" COALESCE(MIN(l.id), 0) AS first, COALESCE(MAX(l.id), 0) AS last, COALESCE(SUM(l.on_hand), 0) AS on_hand, COALESCE(SUM(l.reserved), 0) AS reserved"+
		" FROM orders o"+s.engine.ByKey+" "+s.engine.FirstJoin+" order_lines ol ON ol.order_id = o.id "+s.engine.FirstJoin+" skus s ON s.sku = ol.sku"+
		" LEFT JOIN audits a ON a.sku = ol.sku LEFT JOIN webhooks w ON w.sku = ol.sku LEFT JOIN ledger l"+s.engine.Index("ledger_order")+" ON l.order_id = o.id AND l.sku = ol.sku"+
		" WHERE o.id IN ? GROUP BY ol.order_id, ol.sku, o.status, ol.quantity, s.purchase_limit, a.ledger_id, w.ledger_id", ids).Scan(&lines).Error
	items = make(map[string][]settledLine)
	for _, l := range lines {
		items[l.OrderID] = append(items[l.OrderID], l)
	}
	return items, err
}
