package blackbox_test

import (
	"path/filepath"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// engines runs f on every engine, each time with the URL of an empty database.
func engines(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	formerEngines(t, f)
	t.Run("postgresql", func(t *testing.T) {
		t.Parallel()
		f(t, testbedtest.Postgres(t))
	})
}

// formerEngines is engines with those that have databases of versions before 15 of the schema.
func formerEngines(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, "sqlite:"+filepath.Join(t.TempDir(), "shop.db"))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		f(t, testbedtest.Database(t))
	})
}

// variants is engines and a MariaDB that checks snapshots as its newer versions
// do by default.
func variants(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	engines(t, f)
	t.Run("mariadb_snapshot_isolation", func(t *testing.T) {
		t.Parallel()
		f(t, testbedtest.SnapshotDatabase(t))
	})
}

// open returns a store of one instance, migrated.
func open(t testing.TB, url, instance string, plugins ...gorm.Plugin) *sqlstore.Store {
	t.Helper()
	return opened(t, sqlstore.Config{URL: url, Instance: instance, Plugins: plugins})
}

// opened is open with a configuration. A database that seems out of reach, because the machine stood
// still for longer than a connection may take, is tried again.
func opened(t testing.TB, c sqlstore.Config) (s *sqlstore.Store) {
	t.Helper()
	reach := func(f func() error) {
		t.Helper()
		err := f()
		for end := time.Now().Add(time.Minute); sqldb.Broken(err) && time.Now().Before(end); {
			err = f()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reach(func() (err error) {
		s, err = sqlstore.Open(t.Context(), c)
		return err
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	reach(func() error { return s.Migrate(t.Context()) })
	return s
}

// create puts units of a new SKU on sale.
func create(t testing.TB, s *sqlstore.Store, sku, strategy string, units int64) {
	t.Helper()
	if _, created, err := s.CreateSKU(t.Context(), stock.Level{SKU: sku, Strategy: strategy, OnHand: units}); err != nil || !created {
		t.Fatalf("create %s: created %v, %v", sku, created, err)
	}
}

// auditOf returns the audit of one SKU.
func auditOf(t testing.TB, s *sqlstore.Store, sku string) stock.Audit {
	t.Helper()
	audits, err := insist(t.Context(), func() ([]stock.Audit, error) { return s.Audit(t.Context(), sku) })
	if err != nil {
		t.Fatal(err)
	}
	return audits[0]
}

// request returns a new order of quantity units of each SKU.
func request(quantity int64, skus ...string) *order.Request {
	r := &order.Request{Order: order.Order{ID: order.NewID(), CustomerID: "c1"}, TTL: time.Hour}
	for _, sku := range skus {
		r.Order.Items = append(r.Order.Items, order.Item{SKU: sku, Quantity: quantity})
	}
	return r
}

func fence(token uint64) dlock.Fence { return dlock.Fence{Token: token, Owner: "owner"} }

func claim(sku string, w stock.Update, f dlock.Fence) []stock.Claim {
	return []stock.Claim{{SKU: sku, Update: w, Fence: f}}
}

// conditionally claims SKUs to be written without a guard.
func conditionally(skus ...string) (claims []stock.Claim) {
	for _, sku := range skus {
		claims = append(claims, claim(sku, stock.Conditional, dlock.Fence{})...)
	}
	return claims
}
