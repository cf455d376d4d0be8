package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
)

// lazyBegin is a connector to a MySQL server whose transactions begin with their first statement, in one round trip. Several statements
// may be sent at once.
//
// It is not for a Galera node. If another node has written the same row, the node may roll a transaction back between two
// statements of a packet. It carries out the rest, each on its own, and COMMIT succeeds.
//
// The driver checks whether the server has closed a connection when database/sql takes it from the pool, so BeginTx need not find that
// out.
type lazyBegin struct{ driver.Connector }

// mysqlConn is what database/sql uses of a connection.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

// Connect implements [driver.Connector].
func (c lazyBegin) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lazyConn{mysqlConn: conn.(mysqlConn)}, nil //nolint:errcheck,forcetypeassert // it has all methods
}

// lazyConn is a connection of lazyBegin. database/sql uses it in one goroutine at a time.
type lazyConn struct {
	mysqlConn

	pending bool // a transaction begins with the next statement
}

// begin adds the beginning of the transaction to query if it is the first.
func (c *lazyConn) begin(query string) string {
	if c.pending {
		query = "START TRANSACTION; " + query
	}
	return query
}

// begun says that the outcome of a statement is err. One that was skipped is about to be prepared, and was not sent.
func (c *lazyConn) begun(err error) {
	c.pending = c.pending && errors.Is(err, driver.ErrSkip)
}

// BeginTx implements [driver.ConnBeginTx].
func (c *lazyConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return c.mysqlConn.BeginTx(ctx, options)
	}
	c.pending = true
	return lazyTx{c}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *lazyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Result, err error) {
	defer func() { c.begun(err) }()
	return c.mysqlConn.ExecContext(ctx, c.begin(query), args)
}

// QueryContext implements [driver.QueryerContext].
func (c *lazyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Rows, err error) {
	defer func() { c.begun(err) }()
	return c.mysqlConn.QueryContext(ctx, c.begin(query), args)
}

// PrepareContext implements [driver.ConnPrepareContext].
func (c *lazyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.pending {
		c.pending = false
		if _, err := c.mysqlConn.BeginTx(ctx, driver.TxOptions{}); err != nil {
			return nil, err
		}
	}
	return c.mysqlConn.PrepareContext(ctx, query)
}

// lazyTx is a transaction of a lazyConn.
type lazyTx struct{ conn *lazyConn }

// Commit implements [driver.Tx].
func (t lazyTx) Commit() error { return t.end("COMMIT") }

// Rollback implements [driver.Tx].
func (t lazyTx) Rollback() error { return t.end("ROLLBACK") }

func (t lazyTx) end(statement string) error {
	if t.conn.pending {
		t.conn.pending = false
		return nil // nothing was sent
	}
	_, err := t.conn.mysqlConn.ExecContext(context.Background(), statement, nil) // as the driver does
	return err
}
