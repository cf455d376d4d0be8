package sqltimers

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout"
)

var _ timeout.Store = (*Store)(nil)

// Store keeps timers in one database. It is safe for concurrent use, and any number
// of stores may share the database. Its errors say what was attempted, and are
// [timeout.ErrUnavailable] when the database does not answer, refuses to work, or is too busy; those in a transaction of the caller are
// the errors of the database.
type Store struct {
	db      *sql.DB
	engine  engine
	writers chan struct{} // one token per own writer that may run at once; nil: no limit
}

// New returns a Store on db, which has the tables of [Schema]. The caller closes db.
func New(db *sql.DB, e *sqldb.Engine) (*Store, error) {
	if db == nil || e == nil {
		return nil, errors.New("sqltimers: no database, or no engine")
	}
	s := &Store{db: db, engine: engine{e}}
	if e.OneWriter {
		s.writers = make(chan struct{}, 1)
	}
	return s, nil
}

// Now implements [timeout.Store].
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.read(ctx, "read the database's clock", func() error {
		var ms int64
		err := s.db.QueryRowContext(ctx, "SELECT "+s.engine.Millis).Scan(&ms)
		now = moment(ms)
		return err
	})
	return now, err
}

// SetPaused implements [timeout.Store].
func (s *Store) SetPaused(ctx context.Context, kind string, paused bool) error {
	q := newQuery("INSERT INTO timeout_kinds (kind, paused) VALUES (?, ?)", kind, paused)
	q.add(s.engine.Upsert("kind", "paused"))
	_, err := s.run(ctx, "pause or resume "+kind, nil, []*query{q})
	return err
}

// Paused implements [timeout.Store].
func (s *Store) Paused(ctx context.Context) (kinds []string, err error) {
	err = s.read(ctx, "read paused kinds", func() error {
		rows, err := s.db.QueryContext(ctx, "SELECT kind FROM timeout_kinds WHERE paused = 1 ORDER BY kind")
		kinds, err = collect(rows, err, scanString)
		return err
	})
	return kinds, err
}
