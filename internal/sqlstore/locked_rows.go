package sqlstore

import (
	"context"
	"slices"

	"example.com/shop/internal/sqlstore/bulkhead"
)

// rowTable is the rows of SKUs. Its connections are separate from those of orders.
type rowTable struct{ *Store }

// Probe implements [bulkhead.Table].
func (s rowTable) Probe(ctx context.Context, sku string) error {
	var n int
	return s.aside.QueryRowContext(ctx, "SELECT COUNT(*) FROM skus WHERE sku = ?"+s.dialect.forUpdate, sku).Scan(&n)
}

// Look implements [bulkhead.Table].
func (s rowTable) Look(ctx context.Context, skus []string) (map[string]bulkhead.Sight, error) {
	db := s.db.WithContext(ctx)
	db.Statement.ConnPool = s.aside
	free, err := s.lockFree(db, skus)
	if err != nil {
		return nil, err
	}
	var found []skuRow
	if err := db.Raw("SELECT * FROM skus WHERE sku IN ?", skus).Scan(&found).Error; err != nil {
		return nil, err
	}
	seen := make(map[string]bulkhead.Sight, len(found))
	for _, r := range found {
		seen[r.SKU] = bulkhead.Sight{Version: r.Version, Free: slices.Contains(free, r.SKU)}
	}
	return seen, nil
}
