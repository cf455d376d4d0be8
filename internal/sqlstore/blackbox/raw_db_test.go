package blackbox_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// rawDB opens a database without a store.
func rawDB(t *testing.T, rawURL string) *sql.DB {
	t.Helper()
	if file, ok := strings.CutPrefix(rawURL, "sqlite:"); ok {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	if strings.HasPrefix(rawURL, "postgres:") {
		return testbedtest.OpenSQL(t, rawURL)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	c := driver.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	c.ClientFoundRows = true
	c.Params = map[string]string{testbedtest.IsolationVariable(t, rawURL): "'READ-COMMITTED'"}
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
