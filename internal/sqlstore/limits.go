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
func (t *transaction) over(r *request) error {
	u := t.usages[r.Order.CustomerID]
	if u == nil {
		return nil
	}
	if r.MaxOpen > 0 && u.open >= r.MaxOpen {
		return &order.LimitError{Limit: r.MaxOpen, Had: u.open}
	}
	for _, it := range r.Order.Items {
		if limit := t.limited[it.SKU]; limit > 0 && u.units[it.SKU]+it.Quantity > limit {
			return &order.LimitError{SKU: it.SKU, Limit: limit, Had: u.units[it.SKU]}
		}
	}
	return nil
}

// count adds an accepted order to the usage of its customer, for the later requests.
func (t *transaction) count(r *request) {
	u := t.usages[r.Order.CustomerID]
	if u == nil || len(t.requests) == 1 {
		return
	}
	u.open++
	for _, it := range r.Order.Items {
		u.units[it.SKU] += it.Quantity
	}
}

// customers returns the customers to whose orders a limit applies, in ascending order.
func (t *transaction) customers() []string {
	concerned := make(map[string]bool)
	for _, r := range t.requests {
		if r.MaxOpen > 0 || slices.ContainsFunc(r.Order.Items, func(it order.Item) bool { return t.limited[it.SKU] > 0 }) {
			concerned[r.Order.CustomerID] = true
		}
	}
	return slices.Sorted(maps.Keys(concerned))
}

// countUsage counts what the customers have to whose orders a limit applies, after it has locked their rows.
func (t *transaction) countUsage(tx *gorm.DB) error {
	customers := t.customers()
	if len(customers) == 0 {
		return nil
	}
	if !t.engine.OneWriter {
		var err error
		if customers, err = t.lockCustomers(tx, customers); err != nil || len(customers) == 0 {
			return err
		}
	}
	for _, c := range customers {
		t.usages[c] = &usage{units: make(map[string]int64)}
	}
	now, err := t.countOpen(tx, customers)
	if err != nil || len(t.limited) == 0 {
		return err
	}
	return t.countUnits(tx, customers, now)
}

// lockCustomers locks the rows of customers, waits for none of them, and returns the customers whose rows it has locked.
// It refuses the requests of the others. It fails with errNoCustomerRow unless all customers have rows.
func (t *transaction) lockCustomers(tx *gorm.DB, customers []string) (free []string, err error) {
	lock := "SELECT customer_id FROM customers WHERE customer_id IN ? ORDER BY customer_id" + t.engine.SkipLocked
	if err := tx.Raw(lock, customers).Scan(&free).Error; err != nil || len(free) == len(customers) {
		return free, err
	}
	var rows int
	if err := tx.Raw("SELECT COUNT(*) FROM customers WHERE customer_id IN ?", customers).Scan(&rows).Error; err != nil {
		return nil, err
	}
	if rows < len(customers) {
		return nil, errNoCustomerRow
	}
	isFree := func(customer string) bool { return slices.Contains(free, customer) }
	t.refuseBusy(slices.DeleteFunc(customers, isFree))
	return free, nil
}

// refuseBusy refuses the requests of customers whose rows another transaction has locked. No other request of the transaction
// waits for them.
func (t *transaction) refuseBusy(customers []string) {
	for _, r := range t.requests {
		if slices.Contains(customers, r.Order.CustomerID) {
			r.refused = order.ErrCustomerBusy
		}
	}
}

// countOpen counts pending orders that have not expired at now, the moment for which all is counted. An order that is
// open at now counts, whatever becomes of it later. A late order is locked and read again, because a payment or an
// extension that was in time may be in flight.
func (t *transaction) countOpen(tx *gorm.DB, customers []string) (now int64, err error) {
	var rows []orderRow
	err = tx.Raw("SELECT o.*, "+t.engine.Now+" AS now FROM orders o"+t.engine.Index("orders_customer_status")+
		" WHERE customer_id IN ? AND status = ?", customers, string(order.Pending)).Scan(&rows).Error
	if err != nil {
		return 0, err
	}
	late := make(map[string]string) // customers by their late orders
	for _, r := range rows {
		if now = r.Now; r.late() {
			late[r.ID] = r.CustomerID
		} else {
			t.usages[r.CustomerID].open++
		}
	}
	if rows, err = t.lateRows(tx, maps.Keys(late)); err != nil {
		return 0, err
	}
	for _, r := range rows {
		delete(late, r.ID)
		if r.order(nil).Status == order.Pending { // it was extended meanwhile
			t.usages[r.CustomerID].open++
		}
	}
	t.refuseBusy(slices.Collect(maps.Values(late)))
	return now, nil
}

// countUnits adds up the units of orders that are paid, or open at now.
func (t *transaction) countUnits(tx *gorm.DB, customers []string, now int64) error {
	var rows []struct {
		CustomerID string
		SKU        string
		Units      int64
	}
	err := tx.Raw("SELECT o.customer_id, l.sku, SUM(l.quantity) AS units FROM orders o"+t.engine.Index("orders_customer_status")+
		" "+t.engine.FirstJoin+" order_lines l ON l.order_id = o.id"+
		" WHERE o.customer_id IN ? AND (o.status = ? OR o.status = ? AND o.expires_at > ?) AND l.sku IN ?"+
		" GROUP BY o.customer_id, l.sku",
		customers, string(order.Confirmed), string(order.Pending), now, slices.Sorted(maps.Keys(t.limited))).Scan(&rows).Error
	for _, r := range rows {
		t.usages[r.CustomerID].units[r.SKU] = r.Units
	}
	return err
}

// insertCustomers inserts rows for the customers of the batch, so that they can be locked. It has its own transaction,
// so the rows remain. If the rows disappeared with a refused order, all waiting transactions would insert them, and
// deadlock.
func (t *transaction) insertCustomers(ctx context.Context) error {
	customers := t.customers()
	var known []string // their rows may be locked
	if err := t.db.WithContext(ctx).Raw("SELECT customer_id FROM customers WHERE customer_id IN ?", customers).Scan(&known).Error; err != nil {
		return t.translate(ctx, err)
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
	return t.writing(ctx, func() error {
		return t.db.WithContext(ctx).Exec(t.engine.InsertNew+" INTO customers (customer_id) VALUES (?)"+
			strings.Repeat(", (?)", len(args)-1), args...).Error
	})
}
