package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/testbed/testbedtest"
)

// script decides which statements fail: before they are executed, or after.
type script struct {
	mu            sync.Mutex
	statements    []string                            // those that were sent
	before, after func(n int, statement string) error // n counts from 0; nil: nothing fails
}

// play starts over with other failures.
func (s *script) play(before, after func(n int, statement string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statements, s.before, s.after = nil, before, after
}

func (s *script) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.statements...)
}

// run executes f as the script says.
func (s *script) run(statement string, f func() error) error {
	s.mu.Lock()
	n := len(s.statements)
	s.statements = append(s.statements, statement)
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(n, statement); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	if after != nil {
		return after(n, statement)
	}
	return nil
}

func scripted(t testing.TB) (*sqllock.Locker, *script, *sqllock.Locker, *sql.DB) {
	t.Helper()
	return scriptedFor(t, ttl)
}

// scriptedFor returns a Locker on MariaDB whose statements fail as scripted, a Locker without failures, and a pool.
func scriptedFor(t testing.TB, ttl time.Duration) (*sqllock.Locker, *script, *sqllock.Locker, *sql.DB) {
	t.Helper()
	st := mariaDB(testbedtest.Database(t))
	pool := st.create(t)
	s := new(script)
	st.wrap = func(c driver.Connector) driver.Connector { return connector{c, s} }
	faulty := st.locker(t, sqllock.Config{TTL: ttl})
	st.wrap = nil
	return faulty, s, st.locker(t, sqllock.Config{TTL: ttl}), pool
}

func refused(number uint16) error { return &mysql.MySQLError{Number: number, Message: "of a test"} }

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
func (c conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.script.run(statement, func() (err error) {
		r, err = c.session.ExecContext(ctx, statement, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// QueryContext implements [driver.QueryerContext].
func (c conn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.script.run(statement, func() (err error) {
		r, err = c.session.QueryContext(ctx, statement, args)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}
