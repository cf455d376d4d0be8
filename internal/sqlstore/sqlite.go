package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sqlitedriver "github.com/glebarez/go-sqlite"
	"github.com/glebarez/sqlite"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/timeout/sqltimers"
)

const sqliteNow = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000"

// inURI writes the name of a file so that nothing in it is taken for syntax.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// sqliteDialect describes SQLite in the named file, whose statements tp traces.
func sqliteDialect(file string, access Access, tp trace.TracerProvider) (d dialect, address string, err error) {
	if file == "" || strings.HasPrefix(file, ":") {
		return dialect{}, "", fmt.Errorf("database sqlite:%s: want sqlite:FILE", file)
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
	dsn := "file:" + inURI.Replace(file) + "?" + q.Encode()
	return dialect{
		name: "sqlite",
		open: func() (gorm.Dialector, error) {
			pool, err := openSQLite(dsn, tp)
			return &sqlite.Dialector{Conn: pool}, err
		},
		connections: 8,
		writers:     1,
		timers:      sqltimers.SQLite,
		locks:       sqllock.SQLite,
		cluster:     sqlcluster.SQLite,
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
	}, "sqlite:" + file, nil
}

// Access is what a SQLite file is opened for.
type Access int

// The ways to open a SQLite file.
const (
	AccessCreate Access = iota // to read and write it; if it does not exist, it is created
	AccessChange               // to read and write it; it must exist
	AccessRead                 // to read it; it must exist
)

// check returns why SQLite cannot use a file, in the words of the system: SQLite says "out of memory" to all of it. It
// does not open the file: to close that again would end the locks that this process has on it.
func (a Access) check(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && a == AccessCreate:
		return checkFolder(file)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: want the name of a file", file)
	case a != AccessRead:
		return errors.Join(writable(file), checkFolder(file))
	}
	if _, err := os.Stat(file + "-shm"); err == nil {
		return nil // somebody has the file open, and has created what SQLite needs alongside it
	}
	return checkFolder(file)
}

// checkFolder returns why no file can be created alongside file.
func checkFolder(file string) error {
	folder := filepath.Dir(file)
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("the folder of %s: %w", file, err)
	}
	if err := writable(folder); err != nil {
		return fmt.Errorf("SQLite keeps files next to %s: %w", file, err)
	}
	return nil
}

// opening names an error of SQLite that check has not foreseen; its text speaks of memory.
func opening(err error) error {
	const cannotOpen = 14
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok && e.Code()&0xff == cannotOpen {
		return errors.New("the system does not let SQLite open or create it")
	}
	return err
}
