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

// errNoCustomerRow says that a customer has no row to lock yet.
var errNoCustomerRow = fmt.Errorf("sqlstore: the customer has no row: %w", stock.ErrBusy)

// usage is what a customer has, as far as a limit asks for it.
//
// If a limit applies to an order, the transaction locks the row of the customer and then counts. So two orders of a
// customer count one after the other, each at one moment. Without a limit, nothing is locked or counted. A limit of
// open orders holds only if all instances configure it.
type usage struct {
	open  int64            // pending orders that have not expired
	units map[string]int64 // by SKU: in orders that are paid, or pending and not expired
}

// over returns the limit that r would exceed, or nil.
func (b *transaction) over(r *order.Request) error {
	t := b.usages[r.Order.CustomerID]
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
func (b *transaction) count(r *order.Request) {
	t := b.usages[r.Order.CustomerID]
	if t == nil || len(b.requests) == 1 {
		return
	}
	t.open++
	for _, it := range r.Order.Items {
		t.units[it.SKU] += it.Quantity
	}
}

// customers returns those whom a limit concerns, in ascending order.
func (b *transaction) customers() []string {
	concerned := make(map[string]bool)
	for _, r := range b.requests {
		if r.MaxOpen > 0 || slices.ContainsFunc(r.Order.Items, func(it order.Item) bool { return b.limited[it.SKU] > 0 }) {
			concerned[r.Order.CustomerID] = true
		}
	}
	return slices.Sorted(maps.Keys(concerned))
}

// countUsage finds out what the customers have whom a limit concerns. It locks their rows, and waits for none of them.
func (b *transaction) countUsage(tx *gorm.DB) error {
	b.usages = make(map[string]*usage)
	customers := b.customers()
	if len(customers) == 0 {
		return nil
	}
	if b.dialect.skipLocked != "" { // elsewhere there is one writer at a time
		var free []string
		lock := "SELECT customer_id FROM customers WHERE customer_id IN ? ORDER BY customer_id" + b.dialect.skipLocked
		if err := tx.Raw(lock, customers).Scan(&free).Error; err != nil {
			return err
		}
		if len(free) < len(customers) {
			if err := b.requireCustomers(tx, customers); err != nil {
				return err
			}
			isFree := func(customer string) bool { return slices.Contains(free, customer) }
			b.refuseBusy(slices.DeleteFunc(customers, isFree))
			if customers = free; len(customers) == 0 {
				return nil
			}
		}
	}
	for _, c := range customers {
		b.usages[c] = &usage{units: make(map[string]int64)}
	}
	now, err := b.countOpen(tx, customers)
	if err != nil || len(b.limited) == 0 {
		return err
	}
	return b.countUnits(tx, customers, now)
}

// requireCustomers fails with errNoCustomerRow unless all customers have rows.
func (b *transaction) requireCustomers(tx *gorm.DB, customers []string) error {
	var n int
	if err := tx.Raw("SELECT COUNT(*) FROM customers WHERE customer_id IN ?", customers).Scan(&n).Error; err != nil {
		return err
	}
	if n < len(customers) {
		return errNoCustomerRow
	}
	return nil
}

// refuseBusy refuses the requests of customers whose rows another transaction has. They are to come again: nobody else in the batch
// waits for them.
func (b *transaction) refuseBusy(held []string) {
	for i, r := range b.requests {
		if slices.Contains(held, r.Order.CustomerID) {
			b.refused[i] = order.ErrCustomerBusy
		}
	}
}

// countOpen counts pending orders that have not expired at now, the moment for which all is counted. An order that is
// open at now counts, whatever becomes of it later. A late order is locked and read again, because a payment or an
// extension that was in time may be in flight.
func (b *transaction) countOpen(tx *gorm.DB, customers []string) (now int64, err error) {
	var rows []orderRow
	err = tx.Raw("SELECT o.*, "+b.dialect.now+" AS now FROM orders o"+b.dialect.index("orders_customer_status")+
		" WHERE customer_id IN ? AND status = ?", customers, string(order.Pending)).Scan(&rows).Error
	if err != nil {
		return 0, err
	}
	late := make(map[string]string) // customers by their late orders
	for _, r := range rows {
		if now = r.Now; r.late() {
			late[r.ID] = r.CustomerID
		} else {
			b.usages[r.CustomerID].open++
		}
	}
	if rows, err = b.lateRows(tx, maps.Keys(late)); err != nil {
		return 0, err
	}
	for _, r := range rows {
		delete(late, r.ID)
		if r.order(nil).Status == order.Pending { // it was extended meanwhile
			b.usages[r.CustomerID].open++
		}
	}
	b.refuseBusy(slices.Collect(maps.Values(late)))
	return now, nil
}

// countUnits adds up the units of orders that are paid, or open at now.
func (b *transaction) countUnits(tx *gorm.DB, customers []string, now int64) error {
	var rows []struct {
		CustomerID string
		SKU        string
		Units      int64
	}
	err := tx.Raw("SELECT o.customer_id, l.sku, SUM(l.quantity) AS units FROM orders o"+b.dialect.index("orders_customer_status")+
		" "+b.dialect.firstJoin+" order_lines l ON l.order_id = o.id"+
		" WHERE o.customer_id IN ? AND (o.status = ? OR o.status = ? AND o.expires_at > ?) AND l.sku IN ?"+
		" GROUP BY o.customer_id, l.sku",
		customers, string(order.Confirmed), string(order.Pending), now, slices.Sorted(maps.Keys(b.limited))).Scan(&rows).Error
	for _, r := range rows {
		b.usages[r.CustomerID].units[r.SKU] = r.Units
	}
	return err
}

// insertCustomers inserts rows for the customers of the batch, so that they can be locked. It has its own transaction,
// so the rows remain. Rows that disappeared with a refused order would be inserted by all waiting transactions, which
// would deadlock.
func (b *transaction) insertCustomers(ctx context.Context) error {
	customers := b.customers()
	var known []string // which may be locked
	if err := b.db.WithContext(ctx).Raw("SELECT customer_id FROM customers WHERE customer_id IN ?", customers).Scan(&known).Error; err != nil {
		return b.translate(ctx, err)
	}
	var args []any
	for _, c := range customers {
		if !slices.Contains(known, c) {
			args = append(args, c)
		}
	}
	if len(args) == 0 {
		return nil
	}
	return b.writing(ctx, func() error {
		return b.db.WithContext(ctx).Exec("INSERT IGNORE INTO customers (customer_id) VALUES (?)"+
			strings.Repeat(", (?)", len(args)-1), args...).Error
	})
}
