// Package sqldb is the seam to the engines of SQL: SQLite, MariaDB, MySQL, a shard of Vitess, and PostgreSQL. Packages that keep tables in a
// [database/sql.DB] take an [Engine], and import no driver.
//
// Each engine has one file with what it does not share with another: how connections are opened, with the session settings
// on which the code relies; the [Class] of each error; the clock; insertions of rows that may exist; hints; types of
// columns; the lock of the schema; and [Facts], which the code asks. MariaDB, Galera and Vitess speak the protocol of MySQL, so mysql.go opens
// them too. hosts.go finds out which of them answers. conn.go follows the writer among several hosts.
package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Engine is what differs between the engines. A suffix of a table follows its name, or its alias, in a FROM.
type Engine struct {
	Name    string // sqlite, mariadb, mysql, galera, vitess or postgresql
	Dialect string // sqlite, mysql or postgresql: engines with the same types and migrations
	Shard   string // of Vitess: the keys of the rows, such as -80; otherwise empty
	Facts

	Now    string // expression: microseconds since 1970, when the statement began, whatever the time zone
	Millis string // expression: Now in milliseconds, rounded down

	ForUpdate  string // suffix of a SELECT that locks its rows
	SkipLocked string // the same, without rows that others have locked
	NoWait     string // the same as ForUpdate, but fails if others have locked a row
	ShareFree  string // suffix of a SELECT that keeps others from changing its rows, without rows that others are changing
	FirstJoin  string // joins the table on the left, which is read first
	Greatest   string // function: the greatest of its arguments
	Session    string // query: the number of the session
	Kill       string // ends the query of the session whose number is formatted in; empty: a query ends with its connection, or its limit
	Alter      string // needs the right to change the table that is formatted in, and changes nothing. A file has no rights
	Migrator   string // who may run all migrations
	Changed    string // ends an UPDATE, which then returns as read_at the time when it had locked the row, and changed: 0, or nothing, if it found none
	ByKey      string // suffix of a table of which rows with known keys are locked, however few rows it has

	Locked     func(columns, from string) string          // SELECT that locks rows: from ends with a suffix for it; read_at is when it had the locks
	InsertNew  func(into string) string                   // INSERT INTO ..., unless there is a row with the key
	Index      func(name string) string                   // suffix of a table that is read by that index
	PrimaryKey func(table string) string                  // name of the index of the primary key
	OnConflict func(key string) string                    // precedes the assignments of an INSERT to a row that has the key
	Proposed   func(column string) string                 // the value that such an INSERT has for a column
	DeleteSome func(table, where string) string           // deletes rows, with ORDER BY and LIMIT
	Within     func(query string, d time.Duration) string // has the server end a query after d

	types      func(column string) string     // replaces the word integer
	text       func(kind, size string) string // a column of ascii(size), text(size) or bytes(size)
	table      string                         // ends CREATE TABLE
	inTable    bool                           // whether CREATE TABLE has the indexes
	settings   []string                       // queries: names and values
	lockSchema func(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error)
}

// Facts are what code asks about an engine.
type Facts struct {
	Scripts              bool // several statements may share a round trip, and are one transaction with it
	LocksReachAllWriters bool // a row lock keeps every other writer out, wherever it is connected. Otherwise a guard has to be written, reads may be stale, and COMMIT may conflict
	OneWriter            bool // only one transaction writes at a time, so rows are not locked
	Returning            bool // INSERT and UPDATE can return columns; otherwise LAST_INSERT_ID does
	RowValues            bool // conditions on several columns in parentheses use an index
	LocksAsStored        bool // a statement locks rows as it finds them; only a locking read with an order locks them in that order
	LocksPassInserts     bool // a locking read does not wait for rows that others have inserted and not committed
	EndsReadsOnly        bool // Within has no effect on an UPDATE or INSERT

	Connections int           // default size of a pool
	InsertRows  int           // in one INSERT
	Idle        time.Duration // how long a pool keeps an idle connection
}

// lockedAt is [Engine.Locked] where an expression of the time is evaluated after the lock of its row.
func lockedAt(present string) func(columns, from string) string {
	return func(columns, from string) string {
		return "SELECT " + columns + ", " + present + " AS read_at FROM " + from
	}
}

// LockSchema keeps other migrations out until unlock is called with the error of the migration. It blocks until it has
// the lock, or ctx ends.
func (e *Engine) LockSchema(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error) {
	return e.lockSchema(ctx, conn)
}

// Settings returns the settings and figures of a database on which the code relies, or that slow it down, by name.
func (e *Engine) Settings(ctx context.Context, db *sql.DB) (map[string]string, error) {
	is := make(map[string]string)
	for _, query := range e.settings {
		if err := readSettings(ctx, db, query, is); err != nil {
			return nil, err
		}
	}
	return is, nil
}

// readSettings adds the rows of a query, which are names and values, to is.
func readSettings(ctx context.Context, db *sql.DB, query string, is map[string]string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		is[name] = value
	}
	return rows.Err()
}

// Upsert ends an INSERT that gives columns of a row that exists their new values.
func (e *Engine) Upsert(key string, columns ...string) string {
	assignments := make([]string, len(columns))
	for i, c := range columns {
		assignments[i] = c + " = " + e.Proposed(c)
	}
	return e.OnConflict(key) + strings.Join(assignments, ", ")
}

// Table is a table of a package.
type Table struct {
	Name    string
	Columns []string    // with their types: integer, ascii(32), text(1000) and bytes(255) are those of the engine
	Key     string      // columns of the primary key
	Indexes [][2]string // names and columns
}

// Create returns the statements that create tables. They may be run again, and do nothing then.
func (e *Engine) Create(tables ...Table) []string {
	var statements []string
	sized := regexp.MustCompile(`\b(ascii|text|bytes)\((\d+)\)`)
	for _, t := range tables {
		parts := make([]string, 0, len(t.Columns)+len(t.Indexes)+1)
		for _, c := range t.Columns {
			c = sized.ReplaceAllStringFunc(c, func(s string) string {
				m := sized.FindStringSubmatch(s)
				return e.text(m[1], m[2])
			})
			parts = append(parts, e.types(c))
		}
		parts = append(parts, "PRIMARY KEY ("+t.Key+")")
		var after []string
		for _, i := range t.Indexes {
			if e.inTable {
				parts = append(parts, "KEY "+i[0]+" ("+i[1]+")")
			} else {
				after = append(after, "CREATE INDEX IF NOT EXISTS "+i[0]+" ON "+t.Name+" ("+i[1]+")")
			}
		}
		create := "CREATE TABLE IF NOT EXISTS " + t.Name + " (\n  " + strings.Join(parts, ",\n  ") + "\n" + e.table
		statements = slices.Concat(statements, []string{create}, after)
	}
	return statements
}

// Database is one database, and how connections to it are opened.
type Database struct {
	*Engine
	Address string // without secrets

	Usual     driver.Connector // for transactions
	Single    driver.Connector // for single statements
	Unhurried driver.Connector // for statements that take as long as the tables are large

	Room func() error // of a file: returns [ErrNoRoom], or nil
}

// Open finds out what is at url, which is sqlite:FILE, or mysql: or postgres://USER:PASSWORD@HOST:PORT/DATABASE. It fails, naming the
// address, when a server does not answer before ctx ends, or has settings that no session can change and with which
// the code would not work. Of several hosts, HOST:PORT,HOST:PORT, one has to answer, and connections lead to the first that
// is not read-only. A single server that is read-only is used with [AccessRead] alone. For PostgreSQL it unsets the variables PG... of the process, which its client would read.
func Open(ctx context.Context, url string, access Access) (*Database, error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		d, err := openSQLite(rest, access)
		if err != nil {
			return nil, err
		}
		if err := access.check(rest); err != nil {
			return nil, fmt.Errorf("open database %s: %w", d.Address, err)
		}
		return d, nil
	case "mysql":
		return openMySQL(ctx, url, access)
	case "postgres":
		return openPostgres(ctx, url, access)
	}
	return nil, errEngine
}

// errEngine does not repeat the URL, which may hold a password.
var errEngine = errors.New("database: want sqlite:FILE, mysql://USER:PASSWORD@HOST:PORT/DATABASE or postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// ValidURL reports what is wrong with the form of a database URL, without asking whether anything is there.
func ValidURL(url string) (err error) {
	switch scheme, rest, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		_, err = openSQLite(rest, AccessCreate)
	case "mysql":
		_, _, _, err = parseMySQL(url)
	case "postgres":
		_, _, _, err = parsePostgres(url)
	default:
		err = errEngine
	}
	return err
}
