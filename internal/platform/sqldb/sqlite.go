package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	sqlitedriver "github.com/glebarez/go-sqlite"
)

// SQLite is the engine of a file. It is for 3.35 or later.
func SQLite() *Engine {
	const millis = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)" // its clock has no more
	return &Engine{
		Name: "sqlite", Dialect: "sqlite",
		Facts: Facts{
			OneWriter: true, Returning: true, RowValues: true, LocksReachAllWriters: true,
			Connections: 8, InsertRows: 50, Idle: time.Minute, // the driver takes long over many arguments, and there are no round trips to save
		},
		Now: millis + " * 1000", Millis: millis,
		FirstJoin: "CROSS JOIN", Greatest: "MAX",
		Locked:     lockedAt(millis + " * 1000"), // a transaction begins when no other one writes
		InsertNew:  func(into string) string { return "INSERT OR IGNORE INTO " + into },
		Index:      func(name string) string { return " INDEXED BY " + name },
		PrimaryKey: func(table string) string { return "sqlite_autoindex_" + table + "_1" },
		OnConflict: func(key string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " },
		Proposed:   func(column string) string { return "excluded." + column },
		DeleteSome: func(table, where string) string {
			return "DELETE FROM " + table + " WHERE rowid IN (SELECT rowid FROM " + table + " WHERE " + where + ")"
		},
		Within:     func(query string, _ time.Duration) string { return query },
		types:      strings.NewReplacer("integer", "INTEGER").Replace,
		text:       func(string, string) string { return "TEXT" },
		table:      ") WITHOUT ROWID",
		lockSchema: lockFile,
		settings: []string{"SELECT 'version', sqlite_version() UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode " +
			"UNION ALL SELECT 'synchronous', CAST(synchronous AS TEXT) FROM pragma_synchronous"},
	}
}

// Primary error codes of SQLite, and extended ones of duplicate keys.
var sqliteClasses = map[int]Class{
	1555: Duplicate, 2067: Duplicate, // PRIMARY KEY, UNIQUE
	3: Denied, 8: Denied, 23: Denied, // PERM, READONLY, AUTH
	13: Full,
	5:  Conflict, 6: Conflict, // BUSY, LOCKED
	14: Starting,       // CANTOPEN
	9:  Lost, 10: Lost, // INTERRUPT, IOERR
}

// sqliteTexts are the beginnings of the texts of SQLITE_ERROR, which has no codes for these.
var sqliteTexts = []struct {
	part  string
	class Class
}{
	{"duplicate column name", Repeated}, {`no such column: "`, Repeated}, // to drop
	{"no such table", NoSchema}, {"no such column", NoSchema}, {"has no column named", NoSchema},
}

// sqliteClass returns the class of an error of SQLite, and whether err is one.
func sqliteClass(err error) (Class, bool) {
	if errors.Is(err, ErrMoved) {
		return Denied, true
	}
	if errors.Is(err, ErrNoRoom) {
		return Full, true
	}
	e, ok := errors.AsType[*sqlitedriver.Error](err)
	if !ok {
		return None, false
	}
	for _, code := range []int{e.Code(), e.Code() & 0xff} {
		if class, ok := sqliteClasses[code]; ok {
			return class, true
		}
	}
	for _, t := range sqliteTexts {
		if strings.Contains(e.Error(), t.part) {
			return t.class, true
		}
	}
	return None, true
}

// inURI writes the name of a file so that nothing in it is taken for syntax.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

// openSQLite returns the database in the named file.
func openSQLite(file string, access Access) (*Database, error) {
	if file == "" || strings.HasPrefix(file, ":") {
		return nil, fmt.Errorf("database sqlite:%s: want sqlite:FILE", file)
	}
	if strings.HasPrefix(file, "//") && !strings.HasPrefix(file, "///") {
		return nil, fmt.Errorf("database sqlite:%s: a file has no host: want sqlite:FILE", file)
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
	c := sqliteConnector{file, "file:" + inURI.Replace(file) + "?" + q.Encode(), new(atomic.Pointer[fs.FileInfo])}
	return &Database{Engine: SQLite(), Address: "sqlite:" + file, Usual: c, Single: c, Unhurried: c, Room: c.room}, nil
}

// ErrNoRoom means that no file can be written in the folder of a SQLite file: the disk is full, or the user may not write there. The
// error is of class [Full].
var ErrNoRoom = errors.New("no file can be written in the folder of the database")

// room writes a small file next to that of the database, and deletes it.
func (c sqliteConnector) room() error {
	file, err := filepath.EvalSymlinks(c.file) // as SQLite does for its own other files
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	name := file + "-room"
	err = os.WriteFile(name, make([]byte, 64<<10), 0o600)
	if gone := os.Remove(name); err == nil && !errors.Is(gone, fs.ErrNotExist) { // another instance asks as well
		err = gone
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return nil
}

// ErrMoved means that the path of a SQLite file leads to another file than before, or to none. What is written to the first
// file is lost, and another process sells the same units again. The error is of class [Denied].
var ErrMoved = errors.New("the file was deleted or replaced after it was opened")

// sqliteConnector opens connections to one file. If the path no longer leads to that file, it opens no connection, and drops
// those that there are when they leave the pool. A transaction that has begun by then commits.
type sqliteConnector struct {
	file, dsn string
	opened    *atomic.Pointer[fs.FileInfo] // by the first connection
}

// moved returns [ErrMoved] if the path leads to another file than that of the first connection.
func (c sqliteConnector) moved() error {
	opened := c.opened.Load()
	if opened == nil {
		return nil
	}
	if is, err := os.Stat(c.file); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(*opened, is) {
		return ErrMoved
	}
	return nil
}

// Connect implements [driver.Connector].
func (c sqliteConnector) Connect(context.Context) (driver.Conn, error) {
	if err := c.moved(); err != nil {
		return nil, err
	}
	dsn := c.dsn
	if c.opened.Load() != nil {
		dsn += "&mode=rw" // SQLite creates no empty file where the first one was
	}
	conn, err := c.Driver().Open(dsn)
	if moved := c.moved(); moved != nil { // by now
		if err == nil {
			_ = conn.Close() // nothing was asked of it
		}
		return nil, moved
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok && e.Code()&0xff == 14 {
		err = openError{e}
	}
	if err != nil {
		return nil, err
	}
	if is, err := os.Stat(c.file); err == nil {
		c.opened.CompareAndSwap(nil, &is)
	}
	return sqliteConn{conn.(baseConn), c}, nil //nolint:errcheck,forcetypeassert // it has all methods
}

// sqliteConn is a connection of sqliteConnector.
type sqliteConn struct {
	baseConn

	of sqliteConnector
}

// ResetSession implements [driver.SessionResetter]: database/sql calls it when a connection leaves the pool.
func (c sqliteConn) ResetSession(context.Context) error {
	if c.of.moved() != nil {
		return driver.ErrBadConn // and Connect returns the reason
	}
	return nil
}

// openError is an error that [Access] has not foreseen. The text of SQLite speaks of memory.
type openError struct{ error }

// Error implements error.
func (openError) Error() string { return "the system does not let SQLite open or create the file" }

// Unwrap returns the error of SQLite.
func (e openError) Unwrap() error { return e.error }

// Driver implements [driver.Connector].
func (sqliteConnector) Driver() driver.Driver { return &sqlitedriver.Driver{} }

// lockFile uses a write transaction around the whole migration.
func lockFile(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error) {
	err = Await(ctx, func() error {
		_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		return err
	})
	return func(ctx context.Context, failed error) error {
		end := "COMMIT"
		if failed != nil {
			end = "ROLLBACK"
		}
		_, err := conn.ExecContext(ctx, end)
		return err
	}, err
}
