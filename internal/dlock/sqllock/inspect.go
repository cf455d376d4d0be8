package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"example.com/shop/internal/dlock"
)

// row is what the database knows of a key.
type row struct {
	fence  dlock.Fence   // of the holder, or the last one
	forced uint64        // token of the last lease that was ended by force
	since  time.Time     // by the clock of the database
	left   time.Duration // how long the lease lasts if it is not renewed; it is over if that is not positive
}

// rows reads the rows of keys.
func (l *Locker) rows(ctx context.Context, keys []string) (map[string]row, error) {
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = key
	}
	var all map[string]row
	err := l.run(ctx, func(ctx context.Context, conn *sql.Conn, _ time.Time) error {
		all = make(map[string]row, len(keys))
		rows, err := conn.QueryContext(ctx, l.sql.poll+anyOf("name = ?", len(keys)), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var (
				key         string
				r           row
				since, left int64
			)
			if err := rows.Scan(&key, &r.fence.Owner, &r.fence.Token, &r.forced, &since, &left); err != nil {
				return err
			}
			r.since = time.UnixMicro(since)
			if left <= l.cfg.far() { // otherwise it is over, as take has it
				r.left = time.Duration(left) * time.Microsecond
			}
			all[key] = r
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Inspect implements [dlock.Inspector]. There is no queue, so it counts no waiters.
func (l *Locker) Inspect(ctx context.Context, key string) (dlock.State, error) {
	rows, err := l.rows(ctx, []string{key})
	if err != nil {
		return dlock.State{}, fmt.Errorf("sqllock: inspect %q: %w", key, err)
	}
	r := rows[key]
	if r.left <= 0 {
		return dlock.State{Key: key}, nil
	}
	return dlock.State{Key: key, Held: true, Fence: r.fence, Since: r.since, TTL: r.left}, nil
}

// ForceRelease implements [dlock.ForceReleaser]. The fencing token moves on, so that it stays
// in force for resources that have not seen the next holder yet.
func (l *Locker) ForceRelease(ctx context.Context, key string) error {
	if _, err := l.exec(ctx, l.sql.force, key); err != nil {
		return fmt.Errorf("sqllock: force release %q: %w", key, err)
	}
	return nil
}

// RaiseCounter implements [dlock.CounterRaiser]. It is for a database that was restored from a
// copy while its clock was behind. A present holder whose token is lower loses its
// lease: the resource refuses it anyway.
func (l *Locker) RaiseCounter(ctx context.Context, key string, atLeast uint64) error {
	if atLeast >= math.MaxInt64-1<<20 {
		return fmt.Errorf("sqllock: raise the counter of %q: token %d is beyond what the column can hold", key, atLeast)
	}
	if _, err := l.exec(ctx, l.sql.raiseCounter, key, atLeast); err != nil {
		return fmt.Errorf("sqllock: raise the counter of %q: %w", key, err)
	}
	return nil
}
