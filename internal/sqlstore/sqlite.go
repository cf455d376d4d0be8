package sqlstore

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/glebarez/sqlite"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/timeout/sqltimers"
)

const sqliteNow = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"

// inURI writes the name of a file so that nothing in it is taken for syntax.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// sqliteDialect describes SQLite in the named file.
func sqliteDialect(file string) (d dialect, dsn, address string, err error) {
	if file == "" || strings.HasPrefix(file, ":") {
		return dialect{}, "", "", fmt.Errorf("database sqlite:%s: want sqlite:FILE", file)
	}
	q := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(1000)", "journal_mode(WAL)", "synchronous(FULL)"},
	}
	dsn = "file:" + inURI.Replace(file) + "?" + q.Encode()
	return dialect{
		name:        "sqlite",
		open:        sqlite.Open,
		connections: 8,
		writers:     1,
		timers:      sqltimers.SQLite,
		locks:       sqllock.SQLite,
		pool:        func() (*sql.DB, error) { return sql.Open(sqlite.DriverName, dsn) },
		now:         sqliteNow,
		present:     sqliteNow, // a transaction begins when no other one writes
		firstJoin:   "CROSS JOIN",
		insertNew:   "INSERT OR IGNORE",
		index:       func(name string) string { return " INDEXED BY " + name },
		purge: "DELETE FROM idempotency_keys WHERE rowid IN " +
			"(SELECT rowid FROM idempotency_keys WHERE created_at < " + sqliteNow + " - ? ORDER BY created_at LIMIT ?)",
	}, dsn, "sqlite:" + file, nil
}
