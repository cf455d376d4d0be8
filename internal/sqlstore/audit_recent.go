package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/stock"
)

// checkpoint is a row of audits: the sums of the ledger of a SKU up to an entry, when an audit found every invariant. All entries
// of a SKU are written under the lock of its row, so none with a lower id is committed later. [Store.PurgeOrders] deletes entries up to
// it, and leaves the sums as they are.
type checkpoint struct {
	SKU       string
	LedgerID  int64
	Version   int64 // of the row of the SKU, which grows with each entry
	Stocked   int64
	OnHand    int64
	Reserved  int64
	Fence     int64 // the last one
	CheckedAt int64
}

// auditRow is what an audit reads of a SKU.
type auditRow struct {
	stock.Audit
	Strays, Version, Last, Fence, ReadAt, Since int64
}

// checkpoint returns what remains to be remembered of a, and whether it is right.
func (a auditRow) checkpoint() (c checkpoint, right bool) {
	a.Overdue = 0 // every audit counts them again
	return checkpoint{a.SKU, a.Last, a.Version, a.Stocked, a.LedgerOnHand, a.LedgerReserved, a.Fence, a.ReadAt}, a.OK()
}

// recentQuery reads of a SKU what was written after the ledger entry @since, and the orders that it concerns: those of the
// entries, and those whose ids are later than @after, which may have none. An id has the time by the clock of its instance. It
// reads the counters of the customers of these orders, and no others. Sums are differences to those of the entry.
const recentQuery = `
SELECT s.sku, s.strategy, s.on_hand, s.reserved, s.version, {now} AS read_at, l.*, o.*, b.*, c.*,
  (SELECT a.ledger_id FROM audits a WHERE a.sku = s.sku) AS since
FROM skus s
CROSS JOIN (
  SELECT COALESCE(SUM(CASE WHEN movement = 'RESTOCK' THEN quantity ELSE 0 END), 0) AS stocked, COUNT(*) AS checked,
    COALESCE(SUM(on_hand), 0) AS ledger_on_hand, COALESCE(SUM(reserved), 0) AS ledger_reserved, COALESCE(MAX(id), @since) AS last,
    COALESCE(MAX(CASE WHEN movement = 'RESERVE' AND fence > 0 THEN fence END), @fence) AS fence
  FROM ledger{ledger_sku} WHERE sku = @sku AND id > @since
) l
CROSS JOIN (
  SELECT COALESCE(SUM(CASE WHEN o.status = 'PENDING' THEN ol.quantity ELSE 0 END - e.reserved), 0) AS open,
    COALESCE(SUM(CASE WHEN o.status = 'CONFIRMED' THEN ol.quantity ELSE 0 END + e.on_hand), 0) AS sold,
    COALESCE(SUM(CASE WHEN o.status IN ('PENDING', 'CONFIRMED', 'QUEUED', 'CANCELLED', 'EXPIRED', 'REJECTED') THEN 0 ELSE 1 END), 0) AS strays,
    COALESCE(SUM(CASE WHEN e.ends > 1 THEN 1 ELSE 0 END), 0) AS two_fates
  FROM (
    SELECT r.order_id, COALESCE(SUM(CASE WHEN l.id <= @since THEN l.reserved ELSE 0 END), 0) AS reserved,
      COALESCE(SUM(CASE WHEN l.id <= @since THEN l.on_hand ELSE 0 END), 0) AS on_hand,
      COALESCE(SUM(CASE WHEN l.movement IN ('CONFIRM', 'RELEASE') THEN 1 ELSE 0 END), 0) AS ends
    FROM {recent} r LEFT JOIN ledger l{ledger_order} ON l.order_id = r.order_id AND l.sku = @sku GROUP BY r.order_id
  ) e JOIN orders o ON o.id = e.order_id JOIN order_lines ol ON ol.order_id = o.id AND ol.sku = @sku
) o
CROSS JOIN (
  SELECT COUNT(*) AS fence_steps_back FROM (
    SELECT fence, COALESCE(LAG(fence) OVER (ORDER BY id), @fence) AS before_it
    FROM ledger{ledger_sku} WHERE sku = @sku AND id > @since AND movement = 'RESERVE' AND fence > 0
  ) f WHERE fence < before_it
) b
CROSS JOIN (
  SELECT COUNT(*) AS miscounted FROM customer_usage u WHERE u.sku = @sku
  AND customer_id IN (SELECT o.customer_id FROM {recent} r JOIN orders o ON o.id = r.order_id) AND units <> (
    SELECT COALESCE(SUM(ol.quantity), 0) FROM orders o JOIN order_lines ol ON ol.order_id = o.id AND ol.sku = @sku
    WHERE o.customer_id = u.customer_id AND o.status IN ('PENDING', 'CONFIRMED'))
) c
WHERE s.sku = @sku`

const recentOrders = `(
  SELECT order_id FROM ledger{ledger_sku} WHERE sku = @sku AND id > @since AND order_id <> ''
  UNION SELECT order_id FROM order_lines{order_lines_sku} WHERE sku = @sku AND order_id > @after)`

// AuditRecent implements [stock.Store]. Its time grows with what was written since the last audit; see [Store.Audit] for the rest.
// Of a SKU whose row has the version of its checkpoint it reads overdue orders alone.
func (s *Store) AuditRecent(ctx context.Context, sku string) ([]stock.Audit, error) {
	var right []checkpoint
	audits, err := s.audit(ctx, sku, func(db *gorm.DB) (rows []auditRow, err error) {
		rows, right, err = s.auditRecent(ctx, db, sku)
		return rows, err
	})
	if err == nil {
		err = s.remember(ctx, right)
	}
	return audits, err
}

// auditRecent audits each SKU from its checkpoint on, and returns the new checkpoints.
func (s *Store) auditRecent(ctx context.Context, db *gorm.DB, sku string) (rows []auditRow, right []checkpoint, err error) {
	var levels []skuRow
	if err := db.Raw("SELECT sku, strategy, on_hand, reserved, version FROM skus WHERE ? IN ('', sku) ORDER BY sku", sku).Scan(&levels).Error; err != nil {
		return nil, nil, err
	}
	var found []checkpoint
	if err := db.Raw("SELECT * FROM audits WHERE ? IN ('', sku)", sku).Scan(&found).Error; err != nil {
		return nil, nil, err
	}
	known := make(map[string]checkpoint)
	for _, c := range found {
		known[c.SKU] = c
	}
	if len(known) == 0 {
		if rows, err = s.auditAll(ctx, db, sku); err != nil {
			return nil, nil, err
		}
	} else if rows, err = s.auditEach(ctx, db, levels, known); err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		if c, ok := r.checkpoint(); ok && known[c.SKU].Version != c.Version {
			right = append(right, c)
		}
	}
	return rows, right, nil
}

// auditEach audits the SKUs of levels from their checkpoints on. A SKU without one is audited as a whole.
func (s *Store) auditEach(ctx context.Context, db *gorm.DB, levels []skuRow, known map[string]checkpoint) (rows []auditRow, err error) {
	var late []struct {
		SKU    string
		Orders int64
	}
	err = db.Raw(s.within(ctx, "SELECT l.sku, COUNT(*) AS orders FROM orders o"+s.engine.Index("orders_status")+" "+s.engine.FirstJoin+
		" order_lines l ON l.order_id = o.id WHERE o.status = 'PENDING' AND o.expires_at < "+s.engine.Now+" - ? GROUP BY l.sku"),
		stock.OverdueGrace.Microseconds()).Scan(&late).Error
	if err != nil {
		return nil, err
	}
	overdue := make(map[string]int64)
	for _, l := range late {
		overdue[l.SKU] = l.Orders
	}
	for _, level := range levels {
		r, err := s.auditOne(ctx, db, level, known[level.SKU])
		if err != nil {
			return nil, err
		}
		for i := range r {
			r[i].Overdue = overdue[level.SKU]
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// auditOne audits a SKU from its checkpoint on, or as a whole if there is none.
func (s *Store) auditOne(ctx context.Context, db *gorm.DB, level skuRow, c checkpoint) (rows []auditRow, err error) {
	switch {
	case c.SKU == "":
		return s.auditAll(ctx, db, level.SKU)
	case level.Version == c.Version:
		rows = []auditRow{{
			Audit:   stock.Audit{SKU: level.SKU, Strategy: level.Strategy, OnHand: level.OnHand, Reserved: level.Reserved},
			Version: level.Version, Since: c.LedgerID,
		}}
	default:
		at := fmt.Sprintf("%012x", time.UnixMicro(c.CheckedAt).Add(-time.Minute).UnixMilli()) // of an id: no order takes so long
		err = db.Raw(s.within(ctx, s.auditText(recentQuery)), map[string]any{
			"sku": c.SKU, "since": c.LedgerID, "fence": c.Fence, "after": at[:8] + "-" + at[8:],
		}).Scan(&rows).Error
	}
	for i := range rows {
		a := &rows[i]
		a.Stocked, a.LedgerOnHand, a.LedgerReserved = a.Stocked+c.Stocked, a.LedgerOnHand+c.OnHand, a.LedgerReserved+c.Reserved
		a.Open, a.Sold = a.Open+c.Reserved, a.Sold+c.Stocked-c.OnHand
		a.RightTo, a.RightAt = c.LedgerID, time.UnixMicro(c.CheckedAt).UTC()
		if a.Since != c.LedgerID && !a.OK() { // entries up to a later checkpoint may have been deleted meanwhile
			return s.auditAll(ctx, db, level.SKU)
		}
	}
	return rows, err
}

// auditText fills in the hints and expressions of the engine.
func (s *Store) auditText(query string) string {
	places := []string{"{now}", s.engine.Now}
	for _, index := range []string{"ledger_sku", "ledger_order", "order_lines_sku"} {
		places = append(places, "{"+index+"}", s.engine.Index(index))
	}
	fill := strings.NewReplacer(places...)
	return fill.Replace(strings.ReplaceAll(strings.TrimSpace(query), "{recent}", recentOrders))
}

// remember stores checkpoints, unless another audit has stored later ones. If the database does not let it, the next audit checks more.
func (s *Store) remember(ctx context.Context, right []checkpoint) error {
	var later []string
	for _, column := range []string{"version", "stocked", "on_hand", "reserved", "fence", "checked_at", "ledger_id"} { // the last, as MariaDB assigns one by one
		proposed := s.engine.Proposed(column)
		if column == "fence" { // entries with the latest tokens may have been deleted since
			proposed = s.engine.Greatest + "(audits.fence, " + proposed + ")"
		}
		later = append(later, column+" = CASE WHEN audits.ledger_id <= "+s.engine.Proposed("ledger_id")+" THEN "+proposed+" ELSE audits."+column+" END")
	}
	for some := range slices.Chunk(right, maxRows) {
		var c script
		var args []any
		for _, r := range some {
			args = append(args, r.SKU, r.LedgerID, r.Version, r.Stocked, r.OnHand, r.Reserved, r.Fence, r.CheckedAt)
		}
		c.insert("audits (sku, ledger_id, version, stocked, on_hand, reserved, fence, checked_at)", "(?, ?, ?, ?, ?, ?, ?, ?)", args)
		c.texts[0] += s.engine.OnConflict("sku") + strings.Join(later, ", ")
		err := s.writing(ctx, func() error { return s.run(s.db.WithContext(ctx), &c) })
		if sqldb.Unable(err) || sqldb.Is(err, sqldb.ReadOnly) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("store what the audit found right: %w", err)
		}
	}
	return nil
}
