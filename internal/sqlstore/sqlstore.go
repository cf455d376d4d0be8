package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout/sqltimers"
)

var (
	_ order.Store = (*Store)(nil)
	_ stock.Store = (*Store)(nil)
)

// Config configures a Store.
type Config struct {
	// URL is sqlite:FILE or mysql://USER:PASSWORD@HOST:PORT/DATABASE.
	URL string

	// Access is what a SQLite file is opened for; a server has its own rights. Default: AccessCreate.
	Access Access

	// Instance is recorded in the ledger with every movement.
	Instance string

	// Connections is the largest number of open connections; default 32, and 8
	// on SQLite. Those who write to the row of one SKU have a quarter of them at most, or two. A few more are for audits,
	// for Ping, and to find out which rows are locked.
	Connections int

	// Tracer records a span for every statement in a sampled span, also for those of locks and timers.
	// Default: none.
	Tracer trace.TracerProvider

	// Plugins are installed in gorm. They are for tests that have to stop a
	// statement.
	Plugins []gorm.Plugin
}

// Store keeps orders and stock in one database. It is safe for concurrent use.
type Store struct {
	db           *gorm.DB
	pool         *sql.DB
	auditors     *sql.DB       // connection of audits; nil: the usual ones
	auditing     chan struct{} // one token per audit that may run
	aside        *sql.DB       // connections of Ping, and of those who find out which rows are locked: no order can use them up
	rows         *bulkhead.Group
	dialect      dialect
	instance     string
	address      string
	timers       Scheduler
	lookUps      *lookUps
	outcomeReads chan struct{} // one token per transaction that looks for the outcome of orders
	limits       *sync.Map     // SKU to its purchase limit, which never changes
	writers      chan struct{} // one token per transaction that may run at once; nil: no limit
}

// dialect is what differs between the engines.
type dialect struct {
	name        string
	galera      bool // the server is a node of a Galera cluster
	open        func() (gorm.Dialector, error)
	connections int    // default size of the pool
	writers     int    // transactions at once per process; 0: no limit
	now         string // expression: microseconds since 1970 by the database's clock
	present     string // the same, in a statement that locks a row: when it has the lock
	forUpdate   string // suffix of a SELECT that locks its rows
	skipLocked  string // the same, without those that others have locked
	noWait      string // the same as forUpdate, but fails if others have locked a row
	shareFree   string // suffix of a SELECT that keeps others from changing its rows, without those that others are changing
	firstJoin   string // joins the table on the left, which is read first
	purge       string // deletes answers that are older than the first argument, at most the second
	insertNew   string // INSERT, unless there is a row with the key

	index     func(name string) string                   // suffix of a table that is read by that index
	unhurried func() *sql.DB                             // connections for statements that take long; nil: the usual ones
	within    func(query string, d time.Duration) string // has the server end a query after d
	idle      time.Duration                              // how long a connection is kept that nobody uses
	session   string                                     // number of the session, as a query
	kill      string                                     // ends the query of the session whose number is formatted in
	byKey     string                                     // suffix of a table that is read by its primary key, however few rows it has
	timers    sqltimers.Dialect
	locks     sqllock.Dialect
	cluster   sqlcluster.Dialect
	pool      func() (*sql.DB, error) // connections in addition to the usual ones
	scripts   bool                    // several statements may be sent at once; see lazyBegin
}

// Close closes all connections.
func (s *Store) Close() error {
	s.rows.Close()
	err := errors.Join(s.aside.Close(), s.pool.Close())
	if s.auditors != nil {
		err = errors.Join(err, s.auditors.Close())
	}
	return err
}

// now returns the time by the database's clock.
func (s *Store) now(ctx context.Context) (int64, error) { return s.clock(s.db.WithContext(ctx)) }

// clock is now through db, which may be a transaction.
func (s *Store) clock(db *gorm.DB) (t int64, err error) {
	err = db.Raw("SELECT " + s.dialect.now).Scan(&t).Error
	return t, err
}

// Galera reports whether the database is a node of a Galera cluster. See [Store.ClaimNode].
func (s *Store) Galera() bool { return s.dialect.galera }

// Address returns where the database is, without secrets.
func (s *Store) Address() string { return s.address }
