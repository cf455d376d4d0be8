package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/glebarez/go-sqlite"
	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const (
	maxRetries = 5
	retryPause = 2 * time.Millisecond // longest first pause; doubles with each retry
)

// inTx runs fn in a transaction and commits it, unless fn returns an error,
// which is returned. Failures that may pass are tried again from the start. fn
// must use only the handle that it is given, and must set afresh whatever it
// sets outside.
//
// A COMMIT that was sent and not confirmed fails with [order.ErrOutcomeUnknown]
// and is not tried again: only the caller knows how to find out.
func (s *Store) inTx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return s.writing(ctx, func() error { return s.once(ctx, fn) })
}

// writing calls f, which writes, until it succeeds or fails for good. Without a transaction
// around it f must be safe to repeat.
func (s *Store) writing(ctx context.Context, f func() error) error {
	if s.writers != nil {
		select {
		case s.writers <- struct{}{}:
			defer func() { <-s.writers }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return s.retrying(ctx, f)
}

// repeating is inTx for an fn that can be run again after it has been committed:
// when the reply to COMMIT was lost it is, and finds what it did the first time
// as soon as the rows are free.
func (s *Store) repeating(ctx context.Context, fn func(tx *gorm.DB) error) error {
	err := s.inTx(ctx, fn)
	for lost := 0; errors.Is(err, order.ErrOutcomeUnknown) && lost < maxRetries; lost++ {
		again := s.inTx(ctx, fn)
		if again != nil && !errors.Is(again, order.ErrOutcomeUnknown) {
			return fmt.Errorf("%w: %w", err, again)
		}
		err = again
	}
	return err
}

// retrying calls f until it succeeds or fails for good, at most 1 + maxRetries
// times.
func (s *Store) retrying(ctx context.Context, f func() error) error {
	for try := 0; ; try++ {
		err := f()
		if err == nil || errors.Is(err, order.ErrOutcomeUnknown) {
			return err
		}
		again := ctx.Err() == nil && (transient(err) || broken(err))
		if !again || try == maxRetries || !pause(ctx, retryPause<<try) {
			return s.translate(ctx, err)
		}
	}
}

// once runs fn in one transaction.
func (s *Store) once(ctx context.Context, fn func(tx *gorm.DB) error) error {
	tx := s.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	done := false
	defer func() {
		if !done {
			tx.Rollback() // a rollback that fails has lost its session, and the server undoes it
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	err := tx.Commit().Error
	done = err == nil
	switch {
	case err == nil:
		return nil
	case transient(err), errors.Is(err, sql.ErrTxDone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err // refused, or never sent: database/sql checks the context before, and the driver cannot see it
	default:
		return fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, err)
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

// translate gives err a name that callers know. Errors that come from a broken
// or overloaded database leave nothing behind.
func (s *Store) translate(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w: %w", stock.ErrBusy, context.Cause(ctx), err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case transient(err):
		return fmt.Errorf("%w: %s: %w", stock.ErrBusy, s.address, err)
	case broken(err):
		return fmt.Errorf("%w: %s: %w", stock.ErrUnavailable, s.address, err)
	}
	return err
}

// transient reports whether err says that a transaction was in another one's
// way and has been, or must be, rolled back.
func transient(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch e.Number {
		case 1205, // lock wait timeout
			1213, // deadlock
			1020: // snapshot conflict (innodb_snapshot_isolation)
			return true
		}
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		const busy, locked = 5, 6
		primary := e.Code() & 0xff
		return primary == busy || primary == locked
	}
	return false
}

// broken reports whether err says that the database cannot be reached or
// refuses to work.
func broken(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch e.Number {
		case 1021, // disk full
			1040, // too many connections
			1053, // server shutdown in progress
			1114, // table full
			1203, // too many connections of one user
			1317, // query interrupted
			1290, // read only
			1836, // read only
			1927: // connection killed
			return true
		}
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		const readonly, ioerr, full, cantopen = 8, 10, 13, 14
		switch e.Code() & 0xff {
		case readonly, ioerr, full, cantopen:
			return true
		}
	}
	return false
}

// duplicate reports whether err says that a key is stored already.
func duplicate(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number == 1062
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		const primaryKey, unique = 1555, 2067
		return e.Code() == primaryKey || e.Code() == unique
	}
	return false
}
