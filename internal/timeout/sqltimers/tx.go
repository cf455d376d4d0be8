package sqltimers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout"
)

// retryPause is the longest first pause of [sqldb.Retry].
const retryPause = 4 * time.Millisecond

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

// write runs f in its own transaction, or on the pool if f is one statement, until it succeeds or fails for good. f must reset whatever
// it sets outside.
func (s *Store) write(ctx context.Context, what string, n extent, f func(tx timeout.Tx) error) error {
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

// retrying calls f until it succeeds or fails for good.
func retrying(ctx context.Context, f func() error) error {
	return sqldb.Retry(ctx, retryPause, sqldb.Transient, f)
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
	case sqldb.Transient(err), sqldb.Broken(err), sqldb.Unable(err):
		return fmt.Errorf("%s: %w: %w", what, timeout.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
