package sqltimers_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"
)

// script decides, per statement, what the database is to fail with.
type script struct {
	mu         sync.Mutex
	statements []string                            // those that were sent
	fail       func(n int, statement string) error // n counts from 0; nil: nothing fails
}

func (s *script) sent(statement string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements = append(s.statements, statement)
	if s.fail == nil {
		return nil
	}
	return s.fail(len(s.statements)-1, statement)
}

// play starts over with another failure.
func (s *script) play(fail func(n int, statement string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements, s.fail = nil, fail
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.statements)
}

// scripted returns a pool on the same database whose statements fail as the script says.
func scripted(tb testing.TB, c driver.Connector) (*sql.DB, *script) {
	tb.Helper()
	s := new(script)
	db := sql.OpenDB(connector{c, s})
	tb.Cleanup(func() { db.Close() })
	return db, s
}

type connector struct {
	driver.Connector
	script *script
}

// Connect implements [driver.Connector].
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	to, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conn{to.(session), c.script}, nil
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

type conn struct {
	session
	script *script
}

// ExecContext implements [driver.ExecerContext].
func (c conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.script.sent(statement); err != nil {
		return nil, err
	}
	return c.session.ExecContext(ctx, statement, args)
}

// QueryContext implements [driver.QueryerContext].
func (c conn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.script.sent(statement); err != nil {
		return nil, err
	}
	return c.session.QueryContext(ctx, statement, args)
}
