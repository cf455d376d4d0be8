package sqlstore

import (
	"context"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// perWebhookPass is for how many SKUs a transaction schedules deliveries.
const perWebhookPass = 500

// ScheduleDeliveries gives each SKU a timer of kind that is due now, if its ledger has entries that [Store.Delivered] does not know, and
// it has no such timer, open or dead. It returns how many. A timer that fires in more than ten minutes is from before the database's clock
// was set back. It is due now, and its attempts begin again. Clocks of several nodes differ by less. The ledger is the outbox: an entry is written in the transaction of its order, so
// an order costs nothing more. hold begins each transaction, and its error ends them.
func (s *Store) ScheduleDeliveries(ctx context.Context, hold func(context.Context, timeout.Tx) error, kind string) (n int64, err error) {
	for {
		var push func()
		found := 0
		err := s.repeating(ctx, func(tx *gorm.DB) error {
			if err := hold(ctx, tx.Statement.ConnPool); err != nil {
				return err
			}
			var behind []struct {
				SKU    string
				ReadAt int64
			}
			// The version of a SKU grows with each entry, so no ledger is read for those that have none.
			if err := tx.Raw("SELECT s.sku, "+s.engine.Now+" AS read_at FROM skus s LEFT JOIN webhooks w ON w.sku = s.sku WHERE (w.sku IS NULL OR w.version <> s.version)"+
				" AND NOT EXISTS (SELECT 1 FROM timeouts t WHERE t.kind = ? AND t.id = s.sku AND (t.state <> ? OR t.next_at <= "+s.engine.Millis+" + ?))"+
				" ORDER BY s.sku LIMIT ?", kind, timeout.Open, (2 * timeout.LongestPause).Milliseconds(), perWebhookPass).Scan(&behind).Error; err != nil {
				return err
			}
			if found = len(behind); found == 0 {
				return nil
			}
			var end script
			var rows []any
			timers := make([]timeout.Timer, found)
			for i, b := range behind {
				rows = append(rows, b.SKU)
				timers[i] = timeout.Timer{Kind: kind, ID: b.SKU, Due: time.UnixMicro(b.ReadAt)}
			}
			end.add(s.engine.InsertNew("webhooks (sku, ledger_id, version) VALUES (?, 0, -1)"+strings.Repeat(", (?, 0, -1)", found-1)), rows...)
			var err error
			if push, err = s.timers.Schedule(ctx, &end, timers...); err != nil {
				return err
			}
			return s.run(tx, &end)
		})
		if err != nil || found == 0 {
			return n, err
		}
		push()
		if n += int64(found); found < perWebhookPass {
			return n, nil
		}
	}
}

// Undelivered returns the entries of a SKU after those that [Store.Delivered] knows, in their order, and at most limit. All entries of a
// SKU are written under the lock of its row, so none with a lower id is committed later.
func (s *Store) Undelivered(ctx context.Context, sku string, limit int) (entries []stock.Entry, err error) {
	var version int64 // read before the entries: an entry that is missing below has a later one
	var rows []struct {
		stock.Entry
		CreatedAt int64
	}
	err = s.retrying(ctx, func() error {
		rows = nil
		db := s.db.WithContext(ctx)
		if err := db.Raw("SELECT version FROM skus WHERE sku = ?", sku).Scan(&version).Error; err != nil {
			return err
		}
		return db.Raw("SELECT l.id, l.movement, l.quantity, l.order_id, l.instance, l.created_at, COALESCE(o.customer_id, '') AS customer_id,"+
			" CASE l.movement WHEN 'RESERVE' THEN 'PENDING' WHEN 'CONFIRM' THEN 'CONFIRMED' ELSE COALESCE(o.status, '') END AS status"+
			" FROM ledger l"+s.engine.Index("ledger_sku")+" LEFT JOIN orders o ON o.id = l.order_id"+
			" WHERE l.sku = ? AND l.id > COALESCE((SELECT ledger_id FROM webhooks WHERE sku = ?), 0) ORDER BY l.sku, l.id LIMIT ?", sku, sku, limit).Scan(&rows).Error
	})
	if err == nil && len(rows) == 0 {
		err = s.writing(ctx, func() error {
			return s.db.WithContext(ctx).Exec("UPDATE webhooks SET version = ? WHERE sku = ?", version, sku).Error
		})
	}
	if err != nil {
		return nil, s.translate(ctx, err)
	}
	for _, r := range rows {
		r.At = time.UnixMicro(r.CreatedAt).UTC()
		entries = append(entries, r.Entry)
	}
	return entries, nil
}

// Delivered remembers that the entries of a SKU are delivered up to the one with this id. It never goes back.
func (s *Store) Delivered(ctx context.Context, sku string, id int64) error {
	err := s.writing(ctx, func() error {
		db := s.db.WithContext(ctx)
		if err := db.Exec(s.engine.InsertNew("webhooks (sku, ledger_id, version) VALUES (?, 0, -1)"), sku).Error; err != nil { // it may have been deleted
			return err
		}
		return db.Exec("UPDATE webhooks SET ledger_id = ? WHERE sku = ? AND ledger_id < ?", id, sku, id).Error
	})
	if err != nil {
		return s.translate(ctx, err)
	}
	return nil
}
