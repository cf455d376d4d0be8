package testbedtest

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// OpenSQL opens the database at a URL of --database without the store, until the test ends.
func OpenSQL(t testing.TB, address string) *sql.DB {
	t.Helper()
	driver, dsn := "sqlite", strings.TrimPrefix(address, "sqlite:")+"?_pragma=busy_timeout(10000)"
	if u, err := url.Parse(address); err == nil && u.Scheme == "mysql" {
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, u.Path[1:]
		c.Passwd, _ = u.User.Password()
		driver, dsn = "mysql", c.FormatDSN()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
