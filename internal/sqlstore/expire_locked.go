package sqlstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// lockStock locks the stock of the orders, and reads their lines. It returns the orders of which it has
// every SKU.
func (e *expiration) lockStock(tx *gorm.DB, due []*order.Order) (ready []*order.Order, err error) {
	ids := make([]string, len(due))
	for i, o := range due {
		ids[i] = o.ID
	}
	lines, err := e.linesOf(tx, ids...)
	if err != nil {
		return nil, err
	}
	var skus []string
	for _, o := range due {
		for _, l := range lines[o.ID] {
			o.Items = append(o.Items, order.Item{SKU: l.SKU, Quantity: l.Quantity})
			skus = append(skus, l.SKU)
		}
	}
	free, err := e.lockFree(tx, distinct(skus))
	if err != nil {
		return nil, err
	}
	for _, o := range due {
		for _, it := range o.Items { // ascending, as the lines are
			if !slices.Contains(free, it.SKU) {
				e.blocked[o.ID] = append(e.blocked[o.ID], it.SKU)
			}
		}
		if len(e.blocked[o.ID]) > 0 {
			e.found[o.ID] = order.Expiry{Again: stockBusy}
		} else {
			ready = append(ready, o)
		}
	}
	return ready, nil
}

// lockCounters locks the counters of limits to which the orders return units. It returns the orders of which no transaction has locked
// a counter, and what they add to the counters that there are.
func (e *expiration) lockCounters(tx *gorm.DB, due []*order.Order) (ready []*order.Order, returned []counter, err error) {
	var skus []string
	for _, o := range due {
		skus = append(skus, skusOf(*o)...)
	}
	limited, err := e.limitsOf(tx, distinct(skus))
	if err != nil || len(limited) == 0 {
		return due, nil, err
	}
	var wanted []counter
	for _, o := range due {
		wanted = append(wanted, countersOf(*o, limited)...)
	}
	free, busy, _, err := e.Store.lockCounters(tx, wanted)
	isFree, isBusy := keysOf(free), keysOf(busy)
	for _, o := range due {
		counters := countersOf(*o, limited)
		if slices.ContainsFunc(counters, func(c counter) bool { return isBusy[c.key()] }) {
			e.found[o.ID] = order.Expiry{Again: orderBusy}
			continue
		}
		ready = append(ready, o)
		for _, c := range counters {
			if c.Units = -c.Units; isFree[c.key()] {
				returned = append(returned, c)
			}
		}
	}
	return ready, returned, err
}

// lockFree locks the rows of skus, which ascend, that nobody else has locked, and returns their SKUs.
func (s *Store) lockFree(tx *gorm.DB, skus []string) (free []string, err error) {
	for some := range slices.Chunk(skus, maxRows) {
		var rows []string
		if err := tx.Raw("SELECT sku FROM skus"+s.engine.ByKey+" WHERE sku IN ? ORDER BY sku"+s.engine.SkipLocked, some).Scan(&rows).Error; err != nil {
			return nil, err
		}
		free = append(free, rows...)
	}
	return free, nil
}

// wait expires orders whose stock was locked, which is usual for a SKU that sells well. It waits for the rows that some
// of them lack, and holds only these. If there are several, it first waits for each but the lowest with nothing locked,
// so a row that stays locked blocks no other row. It waits for no row that may be locked for long. It gives up at the first row that does not
// come free in time, and the orders are tried again.
func (e *expiration) wait(ctx context.Context) error {
	groups := make(map[string][]string) // orders by the SKUs that they lack
	for id, skus := range e.blocked {
		key := strings.Join(skus, "\x00")
		groups[key] = append(groups[key], id)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		skus, some := strings.Split(key, "\x00"), *e
		some.ids = slices.Sorted(slices.Values(groups[key]))
		if e.rows.Suspects(skus) { // found has the orders as to be tried again
			continue
		}
		err := e.rows.Do(ctx, skus, func(*bulkhead.Places) error { return some.await(ctx, skus) })
		if err == nil {
			continue
		}
		for _, id := range some.ids { // whatever a transaction that failed has found
			e.found[id] = order.Expiry{Again: stockBusy}
		}
		switch err = e.translate(ctx, err); {
		case errors.Is(err, stock.ErrBusy), errors.Is(err, stock.ErrUnavailable), errors.Is(err, order.ErrOutcomeUnknown):
			return nil
		default:
			return err
		}
	}
	return nil
}

// await expires the orders of e once the rows of skus are free.
func (e *expiration) await(ctx context.Context, skus []string) error {
	lock := func(db *gorm.DB, skus []string) error {
		for _, sku := range skus {
			if _, err := readRow(db, "SELECT sku FROM "+oneRowOf+e.engine.ForUpdate, sku); err != nil {
				return err
			}
		}
		return nil
	}
	if err := e.writing(ctx, func() error { return lock(e.db.WithContext(ctx), skus[1:]) }); err != nil {
		return err
	}
	return e.repeating(ctx, func(tx *gorm.DB) error {
		if err := lock(tx, skus); err != nil {
			return err
		}
		return e.run(tx)
	})
}
