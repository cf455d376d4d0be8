package sqlstore

import (
	"context"
	"database/sql/driver"
	"sync/atomic"

	"example.com/shop/internal/sqldb"
)

// replacing is a connector to a MySQL server that may be demoted, when new connections lead to its successor. If a server
// refuses to write because it is read-only, the pools of the store drop all connections that were opened before. The error
// stays as it is: the driver's own option RejectReadOnly would hide it, and drops one connection per refusal. A refusal
// is never repeated here: the transaction has to begin again.
//
// The driver sends all arguments as text, so no statement that writes is prepared.
type replacing struct {
	driver.Connector

	generation *atomic.Int64 // of the connections of the store; a refusal begins the next one
}

// Connect implements [driver.Connector].
func (c replacing) Connect(ctx context.Context) (driver.Conn, error) {
	generation := c.generation.Load()
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &replacedConn{mysqlConn: conn.(mysqlConn), latest: c.generation, generation: generation}, nil //nolint:errcheck,forcetypeassert // it has all methods
}

// replacedConn is a connection of replacing.
type replacedConn struct {
	mysqlConn

	latest     *atomic.Int64
	generation int64
}

// ExecContext implements [driver.ExecerContext].
func (c *replacedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.mysqlConn.ExecContext(ctx, query, args)
	return result, c.seen(err)
}

// QueryContext implements [driver.QueryerContext].
func (c *replacedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mysqlConn.QueryContext(ctx, query, args)
	return rows, c.seen(err)
}

// seen begins the next generation if err is a refusal to write. Only one of the latest generation does.
func (c *replacedConn) seen(err error) error {
	if sqldb.ReadOnly(err) {
		c.latest.CompareAndSwap(c.generation, c.generation+1)
	}
	return err
}

// IsValid implements [driver.Validator]: database/sql asks when a connection returns to the pool.
func (c *replacedConn) IsValid() bool {
	return c.generation == c.latest.Load() && c.mysqlConn.IsValid()
}

// ResetSession implements [driver.SessionResetter]: database/sql calls it when a connection leaves the pool.
func (c *replacedConn) ResetSession(ctx context.Context) error {
	if c.generation != c.latest.Load() {
		return driver.ErrBadConn
	}
	return c.mysqlConn.ResetSession(ctx)
}
