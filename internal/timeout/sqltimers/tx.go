package sqltimers

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	sqlitedriver "github.com/glebarez/go-sqlite"
	mysqldriver "github.com/go-sql-driver/mysql"

	"example.com/shop/internal/timeout"
)

const (
	maxRetries = 5
	retryPause = 4 * time.Millisecond // longest first pause; doubles with each retry
)

// extent says how many statements a write has; a single one needs no transaction of its own.
type extent bool

const (
	single   extent = false
	multiple extent = true
)

// read runs f, which only reads, until it succeeds or fails for good.
func (s *Store) read(ctx context.Context, what string, f func() error) error {
	return describe(ctx, what, retrying(ctx, f))
}

// write runs f in tx, once. Without tx it runs f in a transaction of its own, or on the
// pool if f is a single statement, until it succeeds or fails for good; f must then set
// afresh whatever it sets outside.
func (s *Store) write(ctx context.Context, what string, tx timeout.Tx, n extent, f func(tx timeout.Tx) error) error {
	if tx != nil {
		return describe(ctx, what, f(tx))
	}
	if s.writers != nil {
		select {
		case s.writers <- struct{}{}:
			defer func() { <-s.writers }()
		case <-ctx.Done():
			return describe(ctx, what, context.Cause(ctx))
		}
	}
	return describe(ctx, what, retrying(ctx, func() error {
		if n == single {
			return f(s.db)
		}
		return s.once(ctx, f)
	}))
}

// once runs f in one transaction and commits it, unless f returns an error.
func (s *Store) once(ctx context.Context, f func(tx timeout.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // one that fails has lost its session, and the server undoes it
		return err
	}
	return tx.Commit()
}

// retrying calls f until it succeeds or fails for good, at most 1 + maxRetries times.
func retrying(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || ctx.Err() != nil || !transient(err) || try == maxRetries || !pause(ctx, retryPause<<try) {
			return err
		}
	}
}

// pause waits up to d and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d/2 + rand.N(d/2)):
		return true
	case <-ctx.Done():
		return false
	}
}

// describe says what was attempted, and whether it is the database that is away.
func describe(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, timeout.ErrNotFound):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w: %w", what, timeout.ErrUnavailable, context.Cause(ctx), err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
	case transient(err), broken(err):
		return fmt.Errorf("%s: %w: %w", what, timeout.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// transient reports whether err says that a transaction was in another one's way.
func transient(err error) bool {
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch e.Number {
		case 1205, // lock wait timeout
			1213, // deadlock
			1020: // snapshot conflict (innodb_snapshot_isolation)
			return true
		}
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const busy, locked = 5, 6
		primary := e.Code() & 0xff
		return primary == busy || primary == locked
	}
	return false
}

// broken reports whether err says that the database cannot be reached or refuses to work.
func broken(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if e, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		switch e.Number {
		case 1021, // disk full
			1040, // too many connections
			1053, // server shutdown in progress
			1114, // table full
			1203, // too many connections of one user
			1290, // read only
			1317, // query interrupted
			1836, // read only
			1927: // connection killed
			return true
		}
	}
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		const readonly, ioerr, full, cantopen = 8, 10, 13, 14
		switch e.Code() & 0xff {
		case readonly, ioerr, full, cantopen:
			return true
		}
	}
	return false
}
