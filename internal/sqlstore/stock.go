package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// CreateSKU implements [stock.Store].
func (s *Store) CreateSKU(ctx context.Context, l stock.Level) (level stock.Level, created bool, err error) {
	if !s.shard.Has(l.SKU) {
		return stock.Level{}, false, fmt.Errorf("%w: SKU %q belongs to another shard than %s, which this instance sells", stock.ErrInvalid, l.SKU, s.shard)
	}
	now, err := s.now(ctx)
	if err != nil {
		return stock.Level{}, false, s.translate(ctx, err)
	}
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		var c script
		c.insert("skus (sku, strategy, on_hand, reserved, version, fence, fence_owner, created_at, purchase_limit)",
			"(?, ?, ?, ?, ?, ?, ?, ?, ?)", []any{l.SKU, l.Strategy, l.OnHand, 0, 1, 0, "", now, l.Limit})
		c.entry(s, stock.Restock, l.SKU, l.OnHand, now, dlock.Fence{})
		return s.run(tx, &c)
	})
	if err == nil {
		return stock.Level{SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Limit: l.Limit, Version: 1}, true, nil
	}
	if !sqldb.Is(err, sqldb.Duplicate) {
		return stock.Level{}, false, err
	}
	if level, err = s.Level(ctx, l.SKU); err != nil {
		return stock.Level{}, false, err
	}
	var initial int64
	first := "SELECT quantity FROM ledger WHERE sku = ? ORDER BY id LIMIT 1"
	if err := s.db.WithContext(ctx).Raw(first, l.SKU).Scan(&initial).Error; err != nil {
		return stock.Level{}, false, s.translate(ctx, err)
	}
	if level.Strategy != l.Strategy || initial != l.OnHand || level.Limit != l.Limit {
		return level, false, fmt.Errorf("%w: %q was created with strategy %q, %d units and a limit of %d",
			stock.ErrExists, l.SKU, level.Strategy, initial, level.Limit)
	}
	return level, false, nil
}

// Level implements [stock.Store] and [order.Store].
func (s *Store) Level(ctx context.Context, sku string) (stock.Level, error) {
	l, _, err := s.levelAt(ctx, sku)
	return l, err
}

// levelAt returns the level of sku, and the time by the database's clock.
func (s *Store) levelAt(ctx context.Context, sku string) (l stock.Level, now int64, err error) {
	if s.shard != (stock.Shard{}) && !s.shard.Has(sku) { // even if a row has come here with a copy of all rows
		return stock.Level{}, 0, stock.ErrOtherShard
	}
	row, err := readRow(s.db.WithContext(ctx), "SELECT *, "+s.engine.Now+" AS read_at FROM "+oneRowOf, sku)
	if err != nil {
		return stock.Level{}, 0, schema(s.translate(ctx, err))
	}
	s.limits.Store(sku, row.Limit)
	return row.level(), row.ReadAt, nil
}

// Levels implements [stock.Store].
func (s *Store) Levels(ctx context.Context, after string, limit int) ([]stock.Level, error) {
	return s.levels(ctx, "sku > ? ORDER BY sku LIMIT ?", after, limit)
}

// LevelsOf returns the levels of those of skus that there are, in any order. It blocks for one statement,
// or until ctx ends. Errors are those of Level.
func (s *Store) LevelsOf(ctx context.Context, skus []string) ([]stock.Level, error) {
	return s.levels(ctx, "sku IN ?", skus)
}

func (s *Store) levels(ctx context.Context, which string, args ...any) ([]stock.Level, error) {
	var rows []skuRow
	err := s.db.WithContext(ctx).Raw("SELECT * FROM skus WHERE "+which, args...).Scan(&rows).Error
	if err != nil {
		return nil, schema(s.translate(ctx, err))
	}
	levels := make([]stock.Level, len(rows))
	for i, r := range rows {
		levels[i] = r.level()
	}
	return levels, nil
}

// Restock implements [stock.Store].
func (s *Store) Restock(ctx context.Context, sku string, quantity int64, once *idempotency.Request) (level stock.Level, err error) {
	err = s.rows.Do(ctx, []string{sku}, func(*bulkhead.Places) error {
		return s.answering(ctx, s.resolving(once), once, func(tx *gorm.DB) (result any, done bool, err error) {
			if err = moveRow(tx, stock.Restock, order.Item{SKU: sku, Quantity: quantity}); err != nil {
				return nil, false, err
			}
			now, err := s.clock(tx)
			if err != nil {
				return nil, false, err
			}
			var c script
			c.entry(s, stock.Restock, sku, quantity, now, dlock.Fence{})
			if err = s.run(tx, &c); err != nil {
				return nil, false, err
			}
			level, err = readLevel(tx, sku)
			return level, true, err
		})
	})
	if err != nil {
		return stock.Level{}, err
	}
	return level, nil
}

// Rebase implements [stock.Store]. It can be repeated, and writes one REBASE. If the offset has changed since its
// start, it or another caller has done it.
func (s *Store) Rebase(ctx context.Context, sku string) (level stock.Level, err error) {
	before, err := s.Level(ctx, sku)
	if err != nil {
		return stock.Level{}, err
	}
	err = s.repeating(ctx, func(tx *gorm.DB) error {
		now, err := s.clock(tx)
		if err != nil {
			return err
		}
		// Each base is new, also where nothing was accepted since the last one: earlier leases must not fit.
		r := tx.Exec(`UPDATE skus SET fence_base = CASE WHEN fence > fence_base THEN fence ELSE fence_base + 1 END,
			version = version + 1 WHERE sku = ? AND fence_base = ?`, sku, int64(before.Base))
		if r.Error != nil {
			return r.Error
		}
		if level, err = readLevel(tx, sku); err != nil || r.RowsAffected == 0 {
			return err
		}
		var c script
		c.entry(s, stock.Rebase, sku, 0, now, level.Fence)
		return s.run(tx, &c)
	})
	if err != nil {
		return stock.Level{}, schema(err)
	}
	return level, nil
}
