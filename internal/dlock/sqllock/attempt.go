package sqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/sqldb"
)

// retryPause is the longest first pause between two attempts of a statement.
const retryPause = 4 * time.Millisecond

// errUnsent says that the statement has not been sent.
var errUnsent = errors.New("not sent")

// run calls f with a connection, and the time before anything was sent. A statement
// that was in the way of another one, or of a connection that was no longer one, has
// changed nothing and is repeated. The error is errUnsent, and maybe the end of ctx,
// or that of the last f. So a server that accepts no work until the timeout is the reason,
// also if the last attempt had no time left to get a connection.
func (l *Locker) run(ctx context.Context, f func(ctx context.Context, conn *sql.Conn, sent time.Time) error) error {
	limited, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
	defer cancel()
	again := func(err error) bool { return errors.Is(err, sqldriver.ErrBadConn) || sqldb.Transient(err) }
	var refusal error
	for {
		err := sqldb.Retry(limited, retryPause, again, func() error { return l.once(limited, f) })
		switch {
		case sqldb.Is(err, sqldb.Starting):
			// A server that is crowded leaves the connections that there are, and one of them comes back.
			if refusal = err; backoff.Jitter(limited, 10*retryPause) {
				continue
			}
		case refusal == nil || limited.Err() == nil || !errors.Is(err, errUnsent):
			return l.inTime(ctx, limited, err)
		}
		return l.inTime(ctx, ctx, refusal) // the timeout is not the reason
	}
}

func (l *Locker) once(ctx context.Context, f func(ctx context.Context, conn *sql.Conn, sent time.Time) error) error {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnsent, err)
	}
	defer conn.Close()
	return f(ctx, conn, time.Now())
}

// write is run for a statement that writes.
func (l *Locker) write(ctx context.Context, f func(ctx context.Context, conn *sql.Conn, sent time.Time) error) error {
	if l.writers != nil {
		select {
		case l.writers <- struct{}{}:
			defer func() { <-l.writers }()
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errUnsent, ctx.Err())
		}
	}
	return l.run(ctx, f)
}

// exec runs a statement that writes, and returns how many rows it has changed.
func (l *Locker) exec(ctx context.Context, statement string, args ...any) (changed int, err error) {
	err = l.write(ctx, func(ctx context.Context, conn *sql.Conn, _ time.Time) error {
		result, err := conn.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		changed = int(n)
		return err
	})
	return changed, err
}

// inTime distinguishes the end of the caller's ctx from the timeout of a statement. It leaves the cause of ctx out,
// which may look like an answer of the database.
func (l *Locker) inTime(ctx, limited context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case limited.Err() != nil && errors.Is(err, errUnsent):
		return fmt.Errorf("%w: no connection within %v: %w", errUnsent, l.cfg.Timeout, os.ErrDeadlineExceeded)
	case limited.Err() != nil:
		return fmt.Errorf("no answer within %v: %w", l.cfg.Timeout, os.ErrDeadlineExceeded)
	}
	return err
}

// certain reports whether the statement that failed with err has changed nothing, and
// never will.
func certain(err error) bool {
	return errors.Is(err, errUnsent) || errors.Is(err, sqldriver.ErrBadConn) || sqldb.Unchanged(err)
}

// attempt tries to take key for id, once. The token is 0 if another owner has it.
func (l *Locker) attempt(ctx context.Context, key, id string) (token uint64, sent time.Time, err error) {
	err = l.write(ctx, func(ctx context.Context, conn *sql.Conn, at time.Time) (err error) {
		sent = at
		token, err = l.take(ctx, conn, key, id, l.cfg.TTL.Microseconds())
		return err
	})
	if err == nil {
		return token, sent, nil
	}
	unsent, known := errors.Is(err, errUnsent), certain(err)
	if ctx.Err() != nil { // its cause may look like an answer
		err = fmt.Errorf("%w: %w", dlock.Ended(ctx), err)
	}
	switch {
	case unsent && ctx.Err() != nil:
		return 0, sent, dlock.Ended(ctx)
	case known:
		return 0, sent, fmt.Errorf("sqllock: acquire %q: %w", key, err)
	}
	return 0, sent, fmt.Errorf("sqllock: acquire %q: %w: %w", key, dlock.ErrUncertain, err)
}

// take runs the statement of the same name.
func (l *Locker) take(ctx context.Context, conn *sql.Conn, args ...any) (token uint64, err error) {
	if !l.returning {
		result, err := conn.ExecContext(ctx, l.sql.take, args...)
		if err != nil {
			return 0, err
		}
		id, err := result.LastInsertId()
		return uint64(id), err
	}
	rows, err := conn.QueryContext(ctx, l.sql.take, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() { // to the end: that is where SQLite commits
		if err := rows.Scan(&token); err != nil {
			return 0, err
		}
	}
	return token, rows.Err()
}

// try makes one attempt, and releases what it may have taken if its outcome is unknown.
func (l *Locker) try(ctx context.Context, key, id string) (*dlock.Lease, error) {
	token, sent, err := l.attempt(ctx, key, id)
	switch {
	case errors.Is(err, dlock.ErrUncertain):
		l.abandon(ctx, key, id)
		return nil, err
	case err != nil:
		return nil, err
	case token == 0:
		return nil, fmt.Errorf("sqllock: %q: %w", key, dlock.ErrHeld)
	}
	return l.lease(ctx, key, dlock.Fence{Token: token, Owner: id}, sent, nil), nil
}

// abandon releases in the background what id may have of key.
func (l *Locker) abandon(ctx context.Context, key, id string) {
	l.rollback.Add(ctx, dlock.Held{Key: key, Fence: dlock.Fence{Owner: id}})
}

// revert is for the Rollback.
func (l *Locker) revert(ctx context.Context, h dlock.Held) (bool, error) {
	n, err := l.exec(ctx, l.sql.free+"(name = ? AND owner = ?)", h.Key, h.Fence.Owner)
	return n > 0, err
}
