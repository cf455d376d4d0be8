package testbedtest

import (
	"database/sql"
	"strings"
	"testing"

	"example.com/shop/internal/platform/sqldb"
)

// OpenSQL opens the database at a URL of --database without the store, until the test ends.
func OpenSQL(t testing.TB, address string) *sql.DB {
	t.Helper()
	if strings.HasPrefix(address, "postgres:") {
		d, err := sqldb.Open(t.Context(), address, sqldb.AccessRead) // a standby, too
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(d.Unhurried)
		t.Cleanup(func() { db.Close() })
		return db
	}
	driver, dsn := "sqlite", strings.TrimPrefix(address, "sqlite:")+"?_pragma=busy_timeout(10000)"
	if c, u, err := parse(address); err == nil {
		c.DBName = u.Path[1:]
		driver, dsn = "mysql", c.FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
