package blackbox_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
)

// A migration that ended in the middle, wherever that was, is taken up again, and keeps what
// is stored.
func TestMigrationIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		raw := new(handle)
		s := open(t, url, "one", raw)
		create(t, s, "a", "conditional", 9)
		want := place(t, s, time.Hour, "a")
		undo := []string{
			"DROP TABLE idempotency_keys", "DROP INDEX ledger_order ON ledger", "ALTER TABLE skus DROP COLUMN purchase_limit",
			"DROP INDEX orders_customer_status ON orders", "DROP INDEX orders_customer ON orders", "ALTER TABLE orders DROP COLUMN reason",
		}
		if raw.db.Name() != "mysql" {
			undo[1], undo[3], undo[4] = "DROP INDEX ledger_order", "DROP INDEX orders_customer_status", "DROP INDEX orders_customer"
		}
		if raw.db.Name() == "postgresql" { // whose tables had all their columns from the start
			undo = slices.DeleteFunc(undo, func(s string) bool { return strings.HasPrefix(s, "ALTER") })
		}
		for done := range len(undo) + 1 {
			for _, statement := range append(slices.Clone(undo[:done]), "DELETE FROM schema_migrations WHERE version > 3") {
				if err := raw.db.Exec(statement).Error; err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Migrate(t.Context()); err != nil {
				t.Fatalf("after %d of %d steps: %v", len(undo)-done, len(undo), err)
			}
			if got, err := s.Order(t.Context(), want.ID, "c1"); err != nil || cmp.Diff(want, got) != "" {
				t.Errorf("%+v became %+v, %v", want, got, err)
			}
			if p, err := s.Orders(t.Context(), order.Filter{Owner: "c1", Limit: 9}); err != nil || len(p.Orders) != 1 {
				t.Errorf("%+v, %v", p, err)
			}
		}
	})
}

// A change of the schema takes as long as it takes: longer than any other statement may.
func TestMigrationIsPatient(t *testing.T) {
	t.Parallel()
	raw, url := new(handle), testbedtest.Database(t)
	s := open(t, url, "one", raw)
	for _, statement := range []string{"DELETE FROM schema_migrations WHERE version > 3", "DROP INDEX ledger_order ON ledger"} {
		if err := raw.db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	reader, err := rawDB(t, url).BeginTx(t.Context(), nil) // its read keeps the table from being changed
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.ExecContext(t.Context(), "SELECT * FROM ledger"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	release := time.AfterFunc(4*time.Second, func() { reader.Rollback() })
	defer release.Stop()
	if err := s.Migrate(t.Context()); err != nil || time.Since(began) < 4*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestFiveInstancesMigrateAtOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		errs := make(chan error)
		for range 5 {
			go func() {
				for {
					s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url})
					if err == nil {
						err = errors.Join(s.Migrate(t.Context()), s.Close())
					}
					if !sqldb.Broken(err) || t.Context().Err() != nil { // but by a machine that was paused
						errs <- err
						return
					}
				}
			}()
		}
		for range 5 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		create(t, open(t, url, "one"), "a", "redis", 1)
	})
}

// A file that another process writes to for longer than a session waits delays a migration, and does not fail it.
func TestMigrationWaitsForABusyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	s := open(t, "sqlite:"+file, "one")
	other, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "DELETE FROM schema_migrations WHERE version > 3"); err != nil {
		t.Fatal(err)
	}
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	release := time.AfterFunc(2*time.Second, func() { tx.Rollback() }) // a session waits for one
	defer release.Stop()
	if err := s.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
}
