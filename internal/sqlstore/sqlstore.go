package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/sqlstore/bulkhead"
	"example.com/shop/internal/stock"
)

var (
	_ order.Store = (*Store)(nil)
	_ stock.Store = (*Store)(nil)
)

// Access is what a database is opened for. See [sqldb.Access].
type Access = sqldb.Access

// The ways to open a database.
const (
	AccessCreate = sqldb.AccessCreate
	AccessChange = sqldb.AccessChange
	AccessRead   = sqldb.AccessRead
)

// Config configures a Store.
type Config struct {
	// URL is sqlite:FILE, or mysql: or postgres://USER:PASSWORD@HOST:PORT/DATABASE.
	URL string

	// Access is what the database is opened for. A server decides what its users may do. Default: AccessCreate.
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
	auditors     *sql.DB       // connections for statements that take long
	auditing     chan struct{} // one token per audit that may run
	aside        *sql.DB       // connections of Ping, and of those who find out which rows are locked: no order can use them up
	rows         *bulkhead.Group
	engine       *sqldb.Database
	steps        []step                                      // of the schema
	connect      func(c driver.Connector, limit int) *sql.DB // a pool of traced connections
	shard        stock.Shard
	instance     string
	timers       Scheduler
	outcomeReads chan struct{} // one token per transaction that looks for the outcome of orders
	rowWait      *atomic.Int64 // for how long the next shared transaction waits for rows, in ns
	limits       *sync.Map     // SKU to its purchase limit, which never changes
	writers      chan struct{} // one token per transaction that may run at once; nil: no limit
}

// Close closes all connections.
func (s *Store) Close() error {
	s.rows.Close()
	return errors.Join(s.aside.Close(), s.auditors.Close(), s.pool.Close())
}

// Pools returns the statistics of the pools of connections, by name.
func (s *Store) Pools() map[string]sql.DBStats {
	return map[string]sql.DBStats{"sql": s.pool.Stats(), "sql audits": s.auditors.Stats(), "sql checks": s.aside.Stats()}
}

// now returns the time by the database's clock.
func (s *Store) now(ctx context.Context) (int64, error) { return s.clock(s.db.WithContext(ctx)) }

// clock is now through db, which may be a transaction.
func (s *Store) clock(db *gorm.DB) (t int64, err error) {
	err = db.Raw("SELECT " + s.engine.Now).Scan(&t).Error
	return t, err
}

// Galera reports whether the database is a node of a Galera cluster.
func (s *Store) Galera() bool { return !s.engine.LocksReachAllWriters }

// Address returns where the database is, without secrets.
func (s *Store) Address() string { return s.engine.Address }
