package sqlstore

import (
	"context"
	"slices"

	"example.com/shop/internal/sqlstore/bulkhead"
)

// lookAt is a [bulkhead.Look]. It has no connection that an order could have.
func (s *Store) lookAt(ctx context.Context, skus []string) (map[string]bulkhead.Sight, error) {
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
