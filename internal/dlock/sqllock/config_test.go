package sqllock_test

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "locks.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := sqllock.New(nil, sqldb.SQLite(), sqllock.Config{}); err == nil {
			t.Error("New accepts no database")
		}
		if _, err := sqllock.New(db, nil, sqllock.Config{}); err == nil {
			t.Error("New accepts no engine")
		}
		if _, err := sqllock.New(db, sqldb.SQLite(), sqllock.Config{TTL: time.Microsecond}); err == nil {
			t.Error("New accepts a TTL that the clock of SQLite cannot measure")
		}
		l, err := sqllock.New(db, sqldb.SQLite(), sqllock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(t.Context(), "k"); err == nil {
			t.Error("Acquire without a table")
		}
	})
}
