package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// errStranger says that a customer has no row to lock yet.
var errStranger = fmt.Errorf("sqlstore: the customer has no row: %w", stock.ErrBusy)

// tally is what a customer has, as far as a limit asks for it.
type tally struct {
	open  int64            // pending orders that have not expired
	units map[string]int64 // by SKU: in orders that are paid, or pending and not expired
}

// over returns the limit that r would exceed, or nil.
func (b *batch) over(r *order.Request) error {
	t := b.tallies[r.Order.CustomerID]
	if t == nil {
		return nil
	}
	if r.MaxOpen > 0 && t.open >= r.MaxOpen {
		return &order.LimitError{Limit: r.MaxOpen, Had: t.open}
	}
	for _, it := range r.Order.Items {
		if limit := b.limited[it.SKU]; limit > 0 && t.units[it.SKU]+it.Quantity > limit {
			return &order.LimitError{SKU: it.SKU, Limit: limit, Had: t.units[it.SKU]}
		}
	}
	return nil
}

// count adds an order that is accepted to what its customer has, for those behind it in
// the batch.
func (b *batch) count(r *order.Request) {
	t := b.tallies[r.Order.CustomerID]
	if t == nil || len(b.requests) == 1 {
		return
	}
	t.open++
	for _, it := range r.Order.Items {
		t.units[it.SKU] += it.Quantity
	}
}

// customers returns those whom a limit concerns, in ascending order.
func (b *batch) customers() []string {
	concerned := make(map[string]bool)
	for _, r := range b.requests {
		if r.MaxOpen > 0 || len(b.limited) > 0 {
			concerned[r.Order.CustomerID] = true
		}
	}
	return slices.Sorted(maps.Keys(concerned))
}

// tallyUp finds out what the customers have whom a limit concerns. It locks their rows, so
// that of two orders of one customer the second one counts the first. That comes before
// anything else is locked, so nobody who holds stock waits here.
func (b *batch) tallyUp(tx *gorm.DB) error {
	b.tallies = make(map[string]*tally)
	customers := b.customers()
	if len(customers) == 0 {
		return nil
	}
	if b.dialect.forUpdate != "" { // elsewhere there is one writer at a time
		var known []string
		lock := "SELECT customer_id FROM customers WHERE customer_id IN ? ORDER BY customer_id" + b.dialect.forUpdate
		if err := tx.Raw(lock, customers).Scan(&known).Error; err != nil {
			return err
		}
		if len(known) < len(customers) {
			return errStranger
		}
	}
	for _, c := range customers {
		b.tallies[c] = &tally{units: make(map[string]int64)}
	}
	if err := b.tallyOpen(tx, customers); err != nil || len(b.limited) == 0 {
		return err
	}
	return b.tallyUnits(tx, customers)
}

// tallyOpen counts pending orders.
func (b *batch) tallyOpen(tx *gorm.DB, customers []string) error {
	var rows []orderRow
	err := tx.Raw("SELECT o.*, "+b.dialect.now+" AS now FROM orders o"+b.dialect.index("orders_customer_status")+
		" WHERE customer_id IN ? AND status = ?", customers, string(order.Pending)).Scan(&rows).Error
	if err == nil && len(b.limited) > 0 && b.dialect.forShare != "" {
		err = b.freeze(tx, &rows)
	}
	for _, r := range rows {
		if r.order(nil).Status == order.Pending {
			b.tallies[r.CustomerID].open++
		}
	}
	return err
}

// freeze keeps pending orders from being paid or given up until the transaction ends, and reads
// them again. So an order that is being paid as it expires is seen as paid or as expired by all
// that follows. It locks them by their ids, as everybody does: by another index it would meet
// those who change them half-way.
func (b *batch) freeze(tx *gorm.DB, rows *[]orderRow) error {
	ids := make([]string, len(*rows))
	for i, r := range *rows {
		ids[i] = r.ID
	}
	slices.Sort(ids)
	*rows = nil
	for some := range slices.Chunk(ids, maxRows) {
		var found []orderRow
		err := tx.Raw("SELECT o.*, "+b.dialect.now+" AS now FROM orders o"+b.dialect.byKey+" WHERE id IN ?"+b.dialect.forShare, some).Scan(&found).Error
		if err != nil {
			return err
		}
		*rows = append(*rows, found...)
	}
	return nil
}

func (b *batch) tallyUnits(tx *gorm.DB, customers []string) error {
	var rows []struct {
		CustomerID string
		SKU        string
		Units      int64
	}
	err := tx.Raw("SELECT o.customer_id, l.sku, SUM(l.quantity) AS units FROM orders o"+b.dialect.index("orders_customer_status")+
		" "+b.dialect.firstJoin+" order_lines l ON l.order_id = o.id"+
		" WHERE o.customer_id IN ? AND (o.status = ? OR o.status = ? AND o.expires_at > "+b.dialect.now+") AND l.sku IN ?"+
		" GROUP BY o.customer_id, l.sku",
		customers, string(order.Confirmed), string(order.Pending), slices.Sorted(maps.Keys(b.limited))).Scan(&rows).Error
	for _, r := range rows {
		b.tallies[r.CustomerID].units[r.SKU] = r.Units
	}
	return err
}

// enroll gives the customers of the batch rows to lock, in a transaction of its own, which
// stay for good: rows that vanish with a refused order would be inserted by all who wait for
// them, and those deadlock.
func (b *batch) enroll(ctx context.Context) error {
	customers := b.customers()
	args := make([]any, len(customers))
	for i, c := range customers {
		args[i] = c
	}
	return b.writing(ctx, func() error {
		return b.db.WithContext(ctx).Exec("INSERT IGNORE INTO customers (customer_id) VALUES (?)"+
			strings.Repeat(", (?)", len(args)-1), args...).Error
	})
}
