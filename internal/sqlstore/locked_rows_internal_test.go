package sqlstore

import (
	"testing"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

// A poll returns which rows are free. It waits for none, and sees every write to them.
func TestLookShowsFreeRowsAndVersions(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: testbedtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	skus := []string{"free", "locked", "written"}
	for _, sku := range skus {
		if _, _, err := s.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: "conditional", OnHand: 100}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() map[string]bulkhead.Sight {
		t.Helper()
		seen, err := s.lookAt(t.Context(), skus)
		if err != nil || len(seen) != len(skus) {
			t.Fatal(seen, err)
		}
		return seen
	}
	for sku, now := range look() {
		if !now.Free || now.Version == 0 {
			t.Errorf("%s: %+v", sku, now)
		}
	}
	for _, sku := range []string{"locked", "written"} {
		before := look()
		tx := s.db.WithContext(t.Context()).Begin()
		defer tx.Rollback()
		if err := tx.Exec("UPDATE skus SET version = version + 1 WHERE sku = ?", sku).Error; err != nil {
			t.Fatal(err)
		}
		for other, now := range look() {
			if now.Free != (other != sku) || now.Version != before[other].Version {
				t.Errorf("%s is locked, and %s: %+v", sku, other, now)
			}
		}
		if err := tx.Commit().Error; err != nil {
			t.Fatal(err)
		}
		if now := look()[sku]; !now.Free || now.Version == before[sku].Version {
			t.Errorf("%s is free and was written to: %+v, before %+v", sku, now, before[sku])
		}
	}
}
