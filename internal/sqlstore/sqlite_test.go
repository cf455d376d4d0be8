package sqlstore_test

import (
	"database/sql"
	"testing"

	"github.com/glebarez/sqlite"
)

// TestSQLiteResetsItsLogSafely: up to 3.51.2, two connections that write and checkpoint at one
// time can corrupt a database in WAL mode, which is how every store here opens it.
func TestSQLiteResetsItsLogSafely(t *testing.T) {
	db, err := sql.Open(sqlite.DriverName, ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	version, safe := "", false
	row := db.QueryRowContext(t.Context(), "SELECT sqlite_version(), sqlite_version() >= '3.51.3'")
	if err := row.Scan(&version, &safe); err != nil {
		t.Fatal(err)
	}
	t.Log("SQLite", version)
	if !safe {
		t.Errorf("SQLite %s, want 3.51.3 or later", version)
	}
}
