package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
)

// auditQuery reads columns, ledger and orders in one statement, which both
// engines answer from one snapshot. The braces are where it is narrowed to one
// SKU, and {long ago} is when the oldest order that may be open has expired. The
// first entry of a SKU counts what deleted orders have bought ([Store.PurgeOrders]).
const auditQuery = `
SELECT s.sku, s.strategy, s.on_hand, s.reserved,
  COALESCE(l.stocked, 0) AS stocked,
  COALESCE(l.on_hand, 0) AS ledger_on_hand,
  COALESCE(l.reserved, 0) AS ledger_reserved,
  COALESCE(o.open, 0) AS open,
  COALESCE(o.sold, 0) + COALESCE(f.quantity - f.on_hand, 0) AS sold,
  COALESCE(o.overdue, 0) AS overdue,
  COALESCE(o.strays, 0) AS strays,
  COALESCE(t.orders, 0) AS two_fates,
  COALESCE(b.steps, 0) AS fence_steps_back,
  COALESCE(c.customers, 0) AS miscounted,
  s.version, {now} AS read_at, COALESCE(l.last, 0) AS last, COALESCE(l.fence, 0) AS fence, COALESCE(l.entries, 0) AS checked
FROM skus s
LEFT JOIN (
  SELECT sku, SUM(CASE WHEN movement = 'RESTOCK' THEN quantity ELSE 0 END) AS stocked,
    SUM(on_hand) AS on_hand, SUM(reserved) AS reserved, MIN(id) AS first, MAX(id) AS last, COUNT(*) AS entries,
    MAX(CASE WHEN movement = 'RESERVE' THEN fence END) AS fence
  FROM ledger {of ledger} GROUP BY sku
) l ON l.sku = s.sku
LEFT JOIN ledger f ON f.id = l.first AND f.movement = 'RESTOCK' AND f.on_hand <= f.quantity
LEFT JOIN (
  SELECT ol.sku, SUM(CASE WHEN o.status = 'PENDING' THEN ol.quantity ELSE 0 END) AS open,
    SUM(CASE WHEN o.status = 'CONFIRMED' THEN ol.quantity ELSE 0 END) AS sold,
    SUM(CASE WHEN o.status = 'PENDING' AND o.expires_at < {long ago} THEN 1 ELSE 0 END) AS overdue,
    SUM(CASE WHEN o.status IN ('PENDING', 'CONFIRMED', 'QUEUED', 'CANCELLED', 'EXPIRED', 'REJECTED') THEN 0 ELSE 1 END) AS strays
  FROM order_lines ol JOIN orders o ON o.id = ol.order_id {and ol} GROUP BY ol.sku
) o ON o.sku = s.sku
LEFT JOIN (
  SELECT sku, COUNT(*) AS orders FROM (
    SELECT sku, order_id FROM ledger WHERE movement IN ('CONFIRM', 'RELEASE') {and ledger}
    GROUP BY sku, order_id HAVING COUNT(*) > 1
  ) settled GROUP BY sku
) t ON t.sku = s.sku
LEFT JOIN (
  SELECT sku, COUNT(*) AS steps FROM (
    SELECT sku, fence, LAG(fence) OVER (PARTITION BY sku ORDER BY id) AS before_it
    FROM ledger WHERE movement = 'RESERVE' AND fence > 0 {and ledger}
  ) fences WHERE fence < before_it GROUP BY sku
) b ON b.sku = s.sku
LEFT JOIN (
  SELECT sku, COUNT(*) AS customers FROM customer_usage u WHERE units <> (
    SELECT COALESCE(SUM(ol.quantity), 0) FROM orders o JOIN order_lines ol ON ol.order_id = o.id AND ol.sku = u.sku
    WHERE o.customer_id = u.customer_id AND o.status IN ('PENDING', 'CONFIRMED')
  ) {and u} GROUP BY sku
) c ON c.sku = s.sku
{of s}
ORDER BY s.sku`

// Audit implements [stock.Store]. Its time grows with the number of orders and ledger entries, and ctx bounds it. A
// process has one audit at a time, and others wait for it. The query ends in the database when ctx does, and also at
// the deadline of ctx if the database cannot be reached any more.
func (s *Store) Audit(ctx context.Context, sku string) ([]stock.Audit, error) {
	var right []checkpoint
	audits, err := s.audit(ctx, sku, func(db *gorm.DB) (rows []auditRow, err error) {
		right = nil
		rows, err = s.auditAll(ctx, db, sku)
		for _, r := range rows {
			if c, ok := r.checkpoint(); ok {
				right = append(right, c)
			}
		}
		return rows, err
	})
	if err == nil {
		err = s.remember(ctx, right)
	}
	return audits, err
}

// audit returns the audits that read returns rows of.
func (s *Store) audit(ctx context.Context, sku string, read func(db *gorm.DB) ([]auditRow, error)) ([]stock.Audit, error) {
	var rows []auditRow
	err := s.retrying(ctx, func() error {
		return s.unhurried(ctx, func(db *gorm.DB) (err error) {
			rows, err = read(db)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if sku != "" && len(rows) == 0 {
		return nil, fmt.Errorf("%w %q", stock.ErrNotFound, sku)
	}
	audits := make([]stock.Audit, len(rows))
	for i, r := range rows {
		if r.Strays > 0 { // a newer version has stored them, and no figure says whether they hold units
			return nil, fmt.Errorf("sqlstore: %d orders of %q are in a state that the audit does not know", r.Strays, r.SKU)
		}
		audits[i] = r.Audit
	}
	return audits, nil
}

// auditAll reads all records of a SKU, or of all SKUs.
func (s *Store) auditAll(ctx context.Context, db *gorm.DB, sku string) (rows []auditRow, err error) {
	var args []any
	if sku != "" {
		args = append(args, sql.Named("sku", sku))
	}
	err = db.Raw(s.within(ctx, strings.TrimSpace(narrowed(s.engine.Now, sku != ""))), args...).Scan(&rows).Error
	return rows, err
}

// within has the server end a query at the deadline of ctx.
func (s *Store) within(ctx context.Context, query string) string {
	if deadline, ok := ctx.Deadline(); ok {
		query = s.engine.Within(query, time.Until(deadline))
	}
	return query
}

// killTimeout is how long the end of a query may take to reach the database.
const killTimeout = 2 * time.Second

// unhurried calls read with a connection for statements that take long, one call at a time. The driver ends the
// connection with ctx and a server continues, so the server receives a KILL.
func (s *Store) unhurried(ctx context.Context, read func(db *gorm.DB) error) error {
	select {
	case s.auditing <- struct{}{}:
		defer func() { <-s.auditing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	db := s.db.WithContext(ctx)
	if s.engine.OneWriter { // SQLite stops with ctx by itself
		return read(db)
	}
	conn, err := s.auditors.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var session int64
	if err := conn.QueryRowContext(ctx, s.engine.Session).Scan(&session); err != nil {
		return err
	}
	db.Statement.ConnPool = conn
	err = read(db)
	if err != nil && ctx.Err() != nil && s.engine.Kill != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTimeout)
		defer cancel()
		_, _ = s.aside.ExecContext(ctx, fmt.Sprintf(s.engine.Kill, session)) // one that has ended cannot be killed
	}
	return err
}

// narrowed returns the query for one SKU, or for all.
func narrowed(now string, one bool) string {
	places := []string{"{now}", now, "{long ago}", fmt.Sprintf("%s - %d", now, stock.OverdueGrace.Microseconds())}
	for _, table := range []string{"ledger", "ol", "s", "u"} {
		where, and := "", ""
		if one {
			where, and = "WHERE "+table+".sku = @sku", "AND "+table+".sku = @sku"
		}
		places = append(places, "{of "+table+"}", where, "{and "+table+"}", and)
	}
	return strings.NewReplacer(places...).Replace(auditQuery)
}
