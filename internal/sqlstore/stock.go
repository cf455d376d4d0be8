package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// CreateSKU implements [stock.Store].
func (s *Store) CreateSKU(ctx context.Context, l stock.Level) (level stock.Level, created bool, err error) {
	now, err := s.now(ctx)
	if err != nil {
		return stock.Level{}, false, s.translate(ctx, err)
	}
	err = s.inTx(ctx, func(tx *gorm.DB) error {
		row := skuRow{SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Limit: l.Limit, Version: 1, CreatedAt: now}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		level = row.level()
		return tx.Create(new(s.entry(stock.Restock, l.SKU, "", l.OnHand, now, dlock.Fence{}))).Error
	})
	if err == nil {
		return level, true, nil
	}
	if !duplicate(err) {
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
	l, err := readLevel(s.db.WithContext(ctx), sku, "")
	if err != nil {
		return stock.Level{}, s.translate(ctx, err)
	}
	s.limits.Store(sku, l.Limit)
	return l, nil
}

// Levels implements [stock.Store].
func (s *Store) Levels(ctx context.Context, after string, limit int) ([]stock.Level, error) {
	var rows []skuRow
	err := s.db.WithContext(ctx).Raw("SELECT * FROM skus WHERE sku > ? ORDER BY sku LIMIT ?", after, limit).Scan(&rows).Error
	if err != nil {
		return nil, s.translate(ctx, err)
	}
	levels := make([]stock.Level, len(rows))
	for i, r := range rows {
		levels[i] = r.level()
	}
	return levels, nil
}

// Restock implements [stock.Store].
func (s *Store) Restock(ctx context.Context, sku string, quantity int64, once *idempotency.Request) (level stock.Level, err error) {
	err = s.answering(ctx, s.resolving(once), once, func(tx *gorm.DB) (result any, done bool, err error) {
		if err = move(tx, stock.Restock, order.Item{SKU: sku, Quantity: quantity}); err != nil {
			return nil, false, err
		}
		now, err := s.clock(tx)
		if err != nil {
			return nil, false, err
		}
		if err = tx.Create(new(s.entry(stock.Restock, sku, "", quantity, now, dlock.Fence{}))).Error; err != nil {
			return nil, false, err
		}
		level, err = readLevel(tx, sku, "")
		return level, true, err
	})
	if err != nil {
		return stock.Level{}, err
	}
	return level, nil
}
