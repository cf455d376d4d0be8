package testbedtest

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
)

// SQLScript decides which statements of a pool on MariaDB fail: before they are executed, or after. A function gets the
// number of the statement, from 0, and its text.
type SQLScript struct {
	mu            sync.Mutex
	statements    []string
	before, after func(n int, statement string) error
}

// Play starts over with other failures. Nil fails nothing.
func (s *SQLScript) Play(before, after func(n int, statement string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements, s.before, s.after = nil, before, after
}

// Sent returns the statements since Play.
func (s *SQLScript) Sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statements)
}

// Wrap returns a connector to the same database, whose statements fail as the script says.
func (s *SQLScript) Wrap(c driver.Connector) driver.Connector { return scriptedConnector{c, s} }

// run executes f as the script says.
func run[T any](s *SQLScript, statement string, f func() (T, error)) (result T, err error) {
	s.mu.Lock()
	n := len(s.statements)
	s.statements = append(s.statements, statement)
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(n, statement); err != nil {
			return result, err
		}
	}
	if result, err = f(); err == nil && after != nil {
		err = after(n, statement)
	}
	return result, err
}

type scriptedConnector struct {
	driver.Connector
	script *SQLScript
}

// Connect implements [driver.Connector].
func (c scriptedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	to, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return scriptedConn{to.(session), c.script}, nil
}

// session is what the driver of MariaDB can do.
type session interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.SessionResetter
	driver.Validator
	driver.NamedValueChecker
}

type scriptedConn struct {
	session
	script *SQLScript
}

// ExecContext implements [driver.ExecerContext].
func (c scriptedConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	return run(c.script, statement, func() (driver.Result, error) { return c.session.ExecContext(ctx, statement, args) })
}

// QueryContext implements [driver.QueryerContext].
func (c scriptedConn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	return run(c.script, statement, func() (driver.Rows, error) { return c.session.QueryContext(ctx, statement, args) })
}
