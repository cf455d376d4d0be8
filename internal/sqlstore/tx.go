package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/stock"
)

const (
	retryPause = 2 * time.Millisecond // longest first pause; doubles with each retry

	maxHeldPause = 7 // the pause for a row that is held doubles so often
)

// heldWait is how long an operation waits for the row of an order or a customer that another transaction has.
const heldWait = 2 * time.Second

// errHeld rolls back a transaction that needs the row of an order, because another transaction has it. The wait for the row
// is outside of the transaction, so that it keeps no connection from other orders.
var errHeld = fmt.Errorf("sqlstore: another transaction has the order: %w", stock.ErrRowLocked)

// inTx runs fn in a transaction and commits it, unless fn returns an error, which is returned. Failures that may pass are tried again from
// the start. fn must use only the handle that it is given, and must set afresh whatever it sets outside.
//
// A COMMIT that was sent and not confirmed fails with [order.ErrOutcomeUnknown]
// and is not tried again: only the caller knows how to find out.
func (s *Store) inTx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return s.writing(ctx, func() error {
		ready := false
		err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			err := fn(tx)
			ready = err == nil
			return err
		})
		switch {
		case !ready, err == nil:
			return err
		case sqldb.RolledBack(err), errors.Is(err, sql.ErrTxDone), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return err // refused, or never sent: database/sql checks the context before, and sqldb never returns its end
		default:
			return &commitError{err}
		}
	})
}

// writing calls f, which writes, until it succeeds or fails for good. Without a transaction around it f must be safe to repeat.
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

// repeating is inTx for an fn that can be run again after its commit. If the reply to COMMIT was lost, fn runs again,
// and finds its first result as soon as the rows are free.
func (s *Store) repeating(ctx context.Context, fn func(tx *gorm.DB) error) error {
	err := s.inTx(ctx, fn)
	for lost := 0; errors.Is(err, order.ErrOutcomeUnknown) && lost < sqldb.MaxRetries; lost++ {
		again := s.inTx(ctx, fn)
		if again != nil && !errors.Is(again, order.ErrOutcomeUnknown) {
			return fmt.Errorf("%w: %w", err, again)
		}
		err = again
	}
	return err
}

// retrying calls f until it succeeds or fails for good. It repeats what [sqldb.Retry] repeats, and waits for heldWait at
// most while another transaction has the row of an order.
func (s *Store) retrying(ctx context.Context, f func() error) error {
	began := time.Now()
	err := sqldb.Retry(ctx, retryPause, passing, func() error {
		err := f()
		for held := 0; errors.Is(err, errHeld) && time.Since(began) < heldWait && backoff.Jitter(ctx, retryPause<<min(held, maxHeldPause)); held++ {
			err = f()
		}
		return err
	})
	if err == nil || errors.Is(err, order.ErrOutcomeUnknown) {
		return err
	}
	return s.translate(ctx, err)
}

// passing reports whether a transaction that failed with err may succeed when it is repeated. A row that was locked for as
// long as a session waits is not waited for again: the connection is for others.
func passing(err error) bool {
	return !errors.Is(err, order.ErrOutcomeUnknown) && !sqldb.Is(err, sqldb.RowLocked) && (sqldb.Transient(err) || sqldb.Broken(err))
}

// commitError says that the database did not confirm a COMMIT. It matches [order.ErrOutcomeUnknown].
type commitError struct{ err error }

// Error implements error.
func (e *commitError) Error() string { return order.ErrOutcomeUnknown.Error() + ": " + e.err.Error() }

// Is makes the error match [order.ErrOutcomeUnknown].
func (e *commitError) Is(target error) bool { return target == order.ErrOutcomeUnknown }

// Unwrap returns the error of the database.
func (e *commitError) Unwrap() error { return e.err }

// translate gives err a name that callers know. Errors that come from a broken or overloaded database leave nothing behind.
func (s *Store) translate(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w: %w", stock.ErrBusy, context.Cause(ctx), err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case sqldb.Is(err, sqldb.RowLocked):
		return fmt.Errorf("%w: %s: %w", stock.ErrRowLocked, s.engine.Address, err)
	case sqldb.Transient(err):
		return fmt.Errorf("%w: %s: %w", stock.ErrBusy, s.engine.Address, err)
	case sqldb.Broken(err), sqldb.Unable(err):
		return fmt.Errorf("%w: %s: %w", stock.ErrUnavailable, s.engine.Address, err)
	}
	return err
}
