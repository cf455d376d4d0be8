package sqlstore

import (
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
)

// usage is what a customer has, as far as a limit asks for it.
//
// If a limit applies to an order, the transaction locks rows of customer_usage. So two orders of a customer count one after the
// other, each at one moment. Without a limit, nothing is locked, counted or written. For each SKU with a limit such a
// row counts the units of the customer in orders that are paid, or pending; whichever transaction changes them writes it.
// A row without a SKU counts nothing: open orders are read from an index, up to the limit, which holds only if all
// instances configure it. A row that is missing is filled from the orders. So rows may be deleted; see
// [Store.fill] for the moment in which an order is missed.
type usage struct {
	open  int64            // pending orders that have not expired, or the limit if there are more
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

// isLimited reports whether a limit applies to r.
func (t *transaction) isLimited(r *request) bool {
	return r.MaxOpen > 0 || slices.ContainsFunc(r.Order.Items, func(it order.Item) bool { return t.limited[it.SKU] > 0 })
}

// counters returns the counters of r, with the units that it adds.
func (t *transaction) counters(r *request) (rows []counter) {
	if r.MaxOpen > 0 {
		rows = append(rows, counter{CustomerID: r.Order.CustomerID, Units: 1})
	}
	return append(rows, countersOf(r.Order, t.limited)...)
}

// countUsage finds out what the customers have to whose orders a limit applies, after it has locked their counters.
func (t *transaction) countUsage(tx *gorm.DB) error {
	if !slices.ContainsFunc(t.requests, t.isLimited) {
		return nil
	}
	var wanted []counter
	for _, r := range t.requests {
		wanted = append(wanted, t.counters(r)...)
	}
	free, busy, missing, err := t.lockCounters(tx, wanted)
	if err == nil && len(missing) > 0 && t.engine.OneWriter {
		if err = t.fill(tx, missing); err == nil {
			free, busy, missing, err = t.lockCounters(tx, wanted)
		}
	}
	if err != nil {
		return err
	}
	if t.missing = missing; len(missing) > 0 {
		return errNoCounter
	}
	for _, c := range free {
		if t.usages[c.CustomerID] == nil {
			t.usages[c.CustomerID] = &usage{units: make(map[string]int64)}
		}
		t.usages[c.CustomerID].units[c.SKU] = c.Units
	}
	t.refuseBusy(busy)
	if len(free) == 0 {
		return nil
	}
	return t.countAt(tx, free[0].ReadAt)
}

// refuseBusy refuses the requests of customers whose counters another transaction has locked. No other request of the
// transaction waits for them.
func (t *transaction) refuseBusy(busy []counter) {
	for _, r := range t.requests {
		if slices.ContainsFunc(busy, func(c counter) bool { return c.CustomerID == r.Order.CustomerID }) {
			r.refused = order.ErrCustomerBusy
		}
	}
}

// countAt counts for the moment now. An order that is open at now counts, whatever becomes of it later.
func (t *transaction) countAt(tx *gorm.DB, now int64) error {
	near := make(map[string]bool) // customers whose late orders decide
	most := make(map[string]int64)
	added := make(map[counter]int64)
	for _, r := range t.requests {
		u := t.usages[r.Order.CustomerID]
		if u == nil || r.refused != nil {
			continue
		}
		if r.MaxOpen > 0 {
			most[r.Order.CustomerID] = max(most[r.Order.CustomerID], r.MaxOpen)
		}
		for _, c := range countersOf(r.Order, t.limited) {
			added[c.key()] += c.Units
			near[c.CustomerID] = near[c.CustomerID] || u.units[c.SKU]+added[c.key()] > t.limited[c.SKU]
		}
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(most)), maxKeys) {
		if err := t.countOpen(tx, some, most, now, near); err != nil {
			return err
		}
	}
	maps.DeleteFunc(near, func(_ string, is bool) bool { return !is })
	if len(near) == 0 {
		return nil
	}
	return t.countLate(tx, slices.Sorted(maps.Keys(near)), now)
}

// countOpen counts the pending orders of customers that have not expired at now, up to their limits. It adds customers to near
// if they have others.
func (t *transaction) countOpen(tx *gorm.DB, customers []string, most map[string]int64, now int64, near map[string]bool) error {
	one := "SELECT ? AS customer_id, COALESCE(SUM(CASE WHEN expires_at > ? THEN 1 ELSE 0 END), 0) AS open, COUNT(*) AS pending FROM (SELECT expires_at FROM orders o" +
		t.engine.Index("orders_customer_status") + " WHERE customer_id = ? AND status = ? ORDER BY expires_at DESC LIMIT ?) o"
	var args []any
	for _, c := range customers {
		args = append(args, c, now, c, string(order.Pending), most[c])
	}
	var rows []struct {
		CustomerID    string
		Open, Pending int64
	}
	err := tx.Raw(one+strings.Repeat(" UNION ALL "+one, len(customers)-1), args...).Scan(&rows).Error
	for _, r := range rows {
		t.usages[r.CustomerID].open = r.Open
		near[r.CustomerID] = near[r.CustomerID] || r.Pending > r.Open
	}
	return err
}

// countLate counts the late orders of customers: it locks them and reads them again, because a payment or an extension that
// was in time may be in flight. Orders that have expired do not count.
func (t *transaction) countLate(tx *gorm.DB, customers []string, now int64) error {
	var found []orderRow
	err := tx.Raw("SELECT id, customer_id FROM orders o"+t.engine.Index("orders_customer_status")+
		" WHERE customer_id IN ? AND status = ? AND expires_at <= ?", customers, string(order.Pending), now).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return err
	}
	late := byID(found)
	rows, err := t.lateRows(tx, maps.Keys(late))
	if err != nil {
		return err
	}
	var expired []string
	for _, r := range rows {
		delete(late, r.ID)
		if status := r.order(nil).Status; status == order.Pending { // it was extended meanwhile
			t.usages[r.CustomerID].open++
		} else if status == order.Expired {
			expired = append(expired, r.ID)
		}
	}
	var busy []counter
	for _, r := range late {
		busy = append(busy, counter{CustomerID: r.CustomerID})
	}
	t.refuseBusy(busy)
	owners := byID(rows)
	for some := range slices.Chunk(expired, maxRows) {
		lines, err := t.linesOf(tx, some...)
		if err != nil {
			return err
		}
		for id, of := range lines {
			for _, l := range of {
				t.usages[owners[id].CustomerID].units[l.SKU] -= l.Quantity
			}
		}
	}
	return nil
}
