package sqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/driver"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/sqldb"
)

// Locker locks keys in a database. Close it to wait for what it does in the background.
type Locker struct {
	cfg       Config
	db        *sql.DB
	sql       statements
	returning bool          // the statement take does
	writers   chan struct{} // one token per own writer that may run at once; nil: no limit
	renewer   *driver.Renewer
	rollback  *driver.Rollback
	process   string
	calls     atomic.Uint64
	pauses    backoff.Decorrelated // between two polls of a waiter; a field for tests
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.MultiLocker   = (*Locker)(nil)
	_ dlock.Inspector     = (*Locker)(nil)
	_ dlock.ForceReleaser = (*Locker)(nil)
	_ dlock.CounterRaiser = (*Locker)(nil)
)

// New returns a Locker on db, which has the table of [Schema]. The caller closes db,
// after the Locker.
func New(db *sql.DB, e *sqldb.Engine, cfg Config) (*Locker, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("sqllock: %w", err)
	}
	if db == nil || e == nil {
		return nil, errors.New("sqllock: no database, or no engine")
	}
	l := &Locker{cfg: cfg, db: db, returning: e.Returning, sql: statementsFor(e, cfg.far()), process: rand.Text()}
	l.pauses = backoff.Decorrelated{Min: 5 * time.Millisecond, Max: 100 * time.Millisecond}
	if e.OneWriter {
		l.writers = make(chan struct{}, 1)
	}
	l.renewer = driver.NewRenewer(driver.RenewerConfig{TTL: cfg.TTL, Renew: l.renew})
	l.rollback = driver.NewRollback(driver.RollbackConfig{
		TTL: cfg.TTL, Pause: cfg.Timeout / 4, Timeout: cfg.Timeout, Revert: l.revert,
	})
	return l, nil
}

// newID returns the owner of a grant to come.
func (l *Locker) newID() string { return l.process + "-" + strconv.FormatUint(l.calls.Add(1), 10) }

// TryAcquire implements [dlock.Locker]. It is one statement.
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, checkKey, key); lease != nil || err != nil {
		return lease, err
	}
	return l.try(ctx, key, l.newID())
}

// Acquire implements [dlock.Locker]. It is one statement if key is free. Otherwise it
// polls for the end of the lease.
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, checkKey, key); lease != nil || err != nil {
		return lease, err
	}
	id := l.newID()
	lease, err := l.try(ctx, key, id)
	if errors.Is(err, dlock.ErrHeld) {
		return l.wait(ctx, key, id)
	}
	return lease, err
}

// AcquireAll implements [dlock.MultiLocker]: it waits for one key after the other, in
// order, and releases all if one fails.
func (l *Locker) AcquireAll(ctx context.Context, keys []string) (*dlock.Lease, error) {
	if lease, err := driver.Enter(ctx, l, checkKey, keys...); lease != nil || err != nil {
		return lease, err
	}
	return dlock.InOrder(ctx, keys, l.Acquire)
}

// Close ends all leases as lost, with the reason [dlock.Closed], and releases them. It waits until they and every
// uncertain acquisition have been released, or a TTL has passed. If ctx ends first, Close returns the error of ctx,
// and the rest expires by its TTL. Later acquisitions are lost at once.
func (l *Locker) Close(ctx context.Context) error {
	return errors.Join(l.renewer.Close(ctx), l.rollback.Close(ctx))
}

// maxKey is the size of the column.
const maxKey = 255

func checkKey(key string) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("sqllock: a key has between 1 and %d bytes, not %d", maxKey, len(key))
	}
	return nil
}
