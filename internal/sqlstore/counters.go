package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// counter is a row of customer_usage. If SKU is "", it is only locked.
type counter struct {
	SKU, CustomerID string

	Units  int64
	ReadAt int64 // the time of reading; no column
}

func (c counter) key() counter { return counter{SKU: c.SKU, CustomerID: c.CustomerID} }

// errNoCounter says that a counter has no row to lock yet.
var errNoCounter = fmt.Errorf("sqlstore: the customer has no counter: %w", stock.ErrBusy)

// accepted returns what the accepted orders add to counters.
func (t *transaction) accepted() (added []counter) {
	for _, r := range t.requests {
		if !r.isAccepted() {
			continue
		}
		for _, c := range t.counters(r) {
			if c.SKU != "" || !t.engine.LocksReachAllWriters { // the transactions of two nodes conflict at a row that both write
				added = append(added, c)
			}
		}
	}
	return added
}

// countersOf returns the counters of the items of o that are limited, with their units.
func countersOf(o order.Order, limited map[string]int64) (rows []counter) {
	for _, it := range o.Items {
		if limited[it.SKU] > 0 {
			rows = append(rows, counter{SKU: it.SKU, CustomerID: o.CustomerID, Units: it.Quantity})
		}
	}
	return rows
}

// lockCounters locks the rows of wanted, and waits for none of them. It returns those that it has locked, with their units
// and the time, those that another transaction has locked, and those that there are not.
func (s *Store) lockCounters(tx *gorm.DB, wanted []counter) (free, busy, missing []counter, err error) {
	seen := make(map[counter]bool)
	find := func(columns, suffix string) (rows []counter, err error) {
		for some := range slices.Chunk(unseen(wanted, seen), maxKeys) {
			const one = "sku = ? AND customer_id = ?"
			var args []any
			for _, c := range some {
				args = append(args, c.SKU, c.CustomerID)
			}
			var found []counter
			err = tx.Raw("SELECT "+columns+" FROM customer_usage"+s.engine.ByKey+" WHERE "+one+strings.Repeat(" OR "+one, len(some)-1)+
				" ORDER BY sku, customer_id"+suffix, args...).Scan(&found).Error
			if err != nil {
				return nil, err
			}
			rows = append(rows, found...)
		}
		for _, c := range rows {
			seen[c.key()] = true
		}
		return rows, nil
	}
	if free, err = find("sku, customer_id, units, "+s.engine.Now+" AS read_at", s.engine.SkipLocked); err == nil && len(unseen(wanted, seen)) > 0 {
		busy, err = find("sku, customer_id", "")
	}
	return free, busy, unseen(wanted, seen), err
}

// unseen returns the keys of rows that are not in seen, each once and in the order in which they are locked.
func unseen(rows []counter, seen map[counter]bool) []counter {
	var keys []counter
	for _, c := range rows {
		if !seen[c.key()] {
			keys = append(keys, c.key())
		}
	}
	slices.SortFunc(keys, func(a, b counter) int {
		return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.CustomerID, b.CustomerID))
	})
	return slices.Compact(keys)
}

// counters adds what adds the units of rows to the counters, which are locked.
func (c *script) counters(s *Store, rows []counter) {
	units := make(map[counter]int64, len(rows))
	for _, r := range rows {
		units[r.key()] += r.Units
	}
	args := make([]any, 0, 3*len(rows))
	for _, k := range unseen(rows, nil) {
		args = append(args, k.SKU, k.CustomerID, units[k])
	}
	c.insert("customer_usage (sku, customer_id, units)", "(?, ?, ?)", args)
	if len(rows) > 0 {
		c.texts[len(c.texts)-1] += s.engine.OnConflict("sku, customer_id") + "units = customer_usage.units + " + s.engine.Proposed("units")
	}
}

// fillMissing fills counters outside of the transaction, so that the rows remain. If they disappeared with a refused order, all
// waiting transactions would insert them, and deadlock.
func (t *transaction) fillMissing(ctx context.Context) error {
	return t.writing(ctx, func() error { return t.fill(t.db.WithContext(ctx), t.missing) })
}

// fill inserts counters that are not there, with the units that the orders have. It locks these orders by their ids, so it waits
// for a transaction that changes them and has found no counter. No order is added meanwhile: that takes the counter. An
// order is missed only if another process fills the counter for it, and somebody deletes that counter, between the two statements.
// On several writing Galera nodes the lock does not reach another node. If an order is cancelled or expires there, the counter
// can stay too high: the customer is refused too early.
func (s *Store) fill(db *gorm.DB, missing []counter) error {
	skus, customers := make([]string, len(missing)), make([]string, len(missing))
	for i, c := range missing {
		skus[i], customers[i] = c.SKU, c.CustomerID
	}
	var found []struct{ ID, SKU, CustomerID string }
	err := db.Raw("SELECT o.id, l.sku, o.customer_id FROM orders o"+s.engine.Index("orders_customer_status")+" "+s.engine.FirstJoin+
		" order_lines l ON l.order_id = o.id WHERE o.customer_id IN ? AND o.status IN ? AND l.sku IN ?",
		distinct(customers), held, distinct(skus)).Scan(&found).Error
	if err != nil {
		return err
	}
	orders := make(map[counter][]string)
	for _, r := range found {
		key := counter{SKU: r.SKU, CustomerID: r.CustomerID}
		orders[key] = append(orders[key], r.ID)
	}
	var c script
	for _, key := range missing {
		c.add(s.engine.InsertNew("customer_usage (sku, customer_id, units) SELECT ?, ?, COALESCE(SUM(quantity), 0) FROM (SELECT l.quantity FROM orders o"+
			s.engine.ByKey+" "+s.engine.FirstJoin+" order_lines l ON l.order_id = o.id AND l.sku = ? WHERE o.id IN ? AND o.status IN ?"+s.engine.ForUpdate+") held"),
			key.SKU, key.CustomerID, key.SKU, append(orders[key], ""), held)
	}
	return s.run(db, &c)
}

// held are the states of orders whose units a counter counts.
var held = []string{string(order.Confirmed), string(order.Pending)}

// limitsOf returns the limits of those of skus that have one.
func (s *Store) limitsOf(db *gorm.DB, skus []string) (map[string]int64, error) {
	var unknown []string
	limited := make(map[string]int64)
	for _, sku := range skus {
		limit, known := s.limits.Load(sku)
		if !known {
			unknown = append(unknown, sku)
		} else if n := limit.(int64); n > 0 { //nolint:errcheck,forcetypeassert // only limits are stored
			limited[sku] = n
		}
	}
	for some := range slices.Chunk(unknown, maxRows) {
		var rows []skuRow
		if err := db.Raw("SELECT sku, purchase_limit FROM skus WHERE sku IN ?", some).Scan(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			s.limits.Store(r.SKU, r.Limit)
			if r.Limit > 0 {
				limited[r.SKU] = r.Limit
			}
		}
	}
	return limited, nil
}

// keysOf returns the keys of rows.
func keysOf(rows []counter) map[counter]bool {
	keys := make(map[counter]bool, len(rows))
	for _, c := range rows {
		keys[c.key()] = true
	}
	return keys
}
