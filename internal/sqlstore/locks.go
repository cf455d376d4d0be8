package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock/sqllock"
)

// lockConnections is how many connections locks have: few, as a poll keeps one for the time of a statement. Renewals
// and releases use them too.
const lockConnections = 4

// Locks is the lock service that the database is. It has connections of its own, so that
// leases are renewed however many orders wait for a connection.
type Locks struct {
	*sqllock.Locker
	pool *sql.DB
}

// Locks opens the lock service, whose table [Store.Migrate] creates. Close it before the
// Store.
func (s *Store) Locks(c sqllock.Config) (*Locks, error) {
	pool := s.connect(s.engine.Single, lockConnections)
	locker, err := sqllock.New(pool, s.engine.Engine, c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open locks in %s: %w", s.engine.Address, err), pool.Close())
	}
	return &Locks{locker, pool}, nil
}

// Close ends all leases, releases grants with an unknown outcome until ctx ends, and closes the connections.
func (l *Locks) Close(ctx context.Context) error {
	return errors.Join(l.Locker.Close(ctx), l.pool.Close())
}
