package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/backoff"
)

// lockConnections is how many connections locks have: few, as a poll keeps one for the time of a statement. Renewals
// and releases use them too.
const lockConnections = 4

// Locks is the lock service that the database is. It has connections of its own, so that
// leases are renewed however many orders wait for a connection.
type Locks struct {
	*sqllock.Locker
	pool    *sql.DB
	keeping sync.WaitGroup
	stop    context.CancelFunc // ends keep
}

// Locks opens the lock service, whose table [Store.Migrate] creates. Close it before the
// Store. Until then one connection stays open, so that locks work when others use up the connections of a server.
func (s *Store) Locks(ctx context.Context, c sqllock.Config) (*Locks, error) {
	pool := s.connect(s.engine.Single, lockConnections)
	locker, err := sqllock.New(pool, s.engine.Engine, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open locks in %s: %w", s.engine.Address, err), pool.Close())
	}
	l := &Locks{Locker: locker, pool: pool}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if !s.engine.OneWriter {
		_ = pool.PingContext(ctx) // locks that fail at first are a reason for a refusal, and not for an end
		l.keeping.Go(func() { l.keep(ctx, s.engine.Idle/2) })
	}
	return l, nil
}

// keep uses a connection before the pool, or the server, closes it for being idle. The pool takes the one that was used last.
func (l *Locks) keep(ctx context.Context, every time.Duration) {
	for backoff.Sleep(ctx, every) {
		_ = l.pool.PingContext(ctx) // the next one opens it again
	}
}

// Close ends all leases, releases grants with an unknown outcome until ctx ends, and closes the connections.
func (l *Locks) Close(ctx context.Context) error {
	l.stop()
	l.keeping.Wait()
	return errors.Join(l.Locker.Close(ctx), l.pool.Close())
}
