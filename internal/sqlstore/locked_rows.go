package sqlstore

import (
	"context"
	"fmt"
	"slices"

	"example.com/shop/internal/platform/sqldb"
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

// within has the server end query when the transaction has waited long enough.
func (t *transaction) within(query string) string {
	if t.wait == 0 {
		return query
	}
	return t.engine.Within(query, t.wait)
}

// inTime returns err, or late if err says that the transaction has waited as long as it may.
func (t *transaction) inTime(err, late error) error {
	if err != nil && t.wait > 0 && sqldb.Is(err, sqldb.Late, sqldb.RowLocked) {
		return fmt.Errorf("%w: %v", late, err) //nolint:errorlint // it must not be retried like err
	}
	return err
}
