package sqlstore

import (
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/timeout/sqltimers"
)

const sqliteNow = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"

// inURI writes the name of a file so that nothing in it is taken for syntax.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// sqliteDialect describes SQLite in the named file, whose statements tp traces.
func sqliteDialect(file string, access Access, tp trace.TracerProvider) (d dialect, dsn, address string, err error) {
	if file == "" || strings.HasPrefix(file, ":") {
		return dialect{}, "", "", fmt.Errorf("database sqlite:%s: want sqlite:FILE", file)
	}
	q := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(1000)", "journal_mode(WAL)", "synchronous(FULL)"},
	}
	if access != AccessCreate {
		// The file is there and in WAL mode, unless it is another file than the user thinks; nothing is written to that.
		q.Set("mode", "rw")
		q["_pragma"] = slices.DeleteFunc(q["_pragma"], func(p string) bool { return p == "journal_mode(WAL)" })
	}
	dsn = "file:" + inURI.Replace(file) + "?" + q.Encode()
	return dialect{
		name: "sqlite",
		open: func(dsn string) (gorm.Dialector, error) {
			pool, err := openSQLite(dsn, tp)
			return &sqlite.Dialector{Conn: pool}, err
		},
		connections: 8,
		writers:     1,
		timers:      sqltimers.SQLite,
		locks:       sqllock.SQLite,
		pool:        func() (*sql.DB, error) { return openSQLite(dsn, tp) },
		idle:        time.Minute,
		within:      func(query string, _ time.Duration) string { return query },
		now:         sqliteNow,
		present:     sqliteNow, // a transaction begins when no other one writes
		firstJoin:   "CROSS JOIN",
		insertNew:   "INSERT OR IGNORE",
		index:       func(name string) string { return " INDEXED BY " + name },
		purge: "DELETE FROM idempotency_keys WHERE rowid IN " +
			"(SELECT rowid FROM idempotency_keys WHERE created_at < " + sqliteNow + " - ? ORDER BY created_at LIMIT ?)",
	}, dsn, "sqlite:" + file, nil
}
