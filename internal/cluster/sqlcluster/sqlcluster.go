package sqlcluster

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/platform/sqldb"
)

// Config is the configuration of a [Cluster].
type Config struct {
	// Group distinguishes services that share a database, by at most 128 bytes. Empty means "shop".
	Group string

	// TTL is how long an instance that has died is listed. A live one renews its entry
	// every TTL/3. 0 means 5 s.
	TTL time.Duration

	// Poll is the time between two readings of one sequence, and so how late a change may be
	// seen. 0 means 500 ms; it is never more than TTL/3.
	Poll time.Duration

	// Timeout bounds one statement, and the wait for a connection before it. 0 means 2 s; it is never more than TTL/3.
	Timeout time.Duration

	// OnError receives entries that cannot be read, once each, and what is tried
	// again in the background. It must not block. Default: none.
	OnError func(error)
}

// validate completes the configuration.
func (cfg *Config) validate() error {
	cfg.Group = cmp.Or(cfg.Group, "shop")
	cfg.TTL = cmp.Or(cfg.TTL, 5*time.Second)
	cfg.Poll = min(cmp.Or(cfg.Poll, 500*time.Millisecond), cfg.TTL/3)
	cfg.Timeout = min(cmp.Or(cfg.Timeout, 2*time.Second), cfg.TTL/3)
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	if cfg.TTL < 10*time.Millisecond || cfg.Poll < time.Millisecond || len(cfg.Group) > 128 {
		return fmt.Errorf("TTL %v or poll %v is too short, or group %.20q too long", cfg.TTL, cfg.Poll, cfg.Group)
	}
	return nil
}

// Cluster is what an instance has of the others in a database. It is safe for concurrent
// use, and has no goroutines of its own.
type Cluster struct {
	db     *sql.DB
	now    string                   // the time by the clock of the database
	insert func(into string) string // an insertion that does nothing if the row exists
	cfg    Config
	strays cluster.Strays
}

var _ cluster.Membership = (*Cluster)(nil)

// New returns a Cluster on db, which has the tables of [Schema] and which it does not close.
func New(db *sql.DB, e *sqldb.Engine, cfg Config) (*Cluster, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("sqlcluster: %w", err)
	}
	if db == nil || e == nil {
		return nil, errors.New("sqlcluster: no database, or no engine")
	}
	return &Cluster{db: db, now: e.Now, insert: e.InsertNew, cfg: cfg}, nil
}

// exec runs one statement, and returns how many rows it has changed.
func (c *Cluster) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	r, err := c.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// until returns the end of a row that is written now.
func (c *Cluster) until() string { return fmt.Sprintf("%s + %d", c.now, c.cfg.TTL.Microseconds()) }

// live is the condition that a row counts at a time. A row that ends later than 2 TTL from then was written before the
// clock of the database was set back, and its owner may be dead.
func (c *Cluster) live(now string) string {
	return fmt.Sprintf("expires_at > %s AND expires_at <= %s + %d", now, now, 2*c.cfg.TTL.Microseconds())
}

// rows returns pairs of texts that a query selects.
func (c *Cluster) rows(ctx context.Context, query string, args ...any) (pairs [][2]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	rows, err := c.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var pair [2]string
		if err := rows.Scan(&pair[0], &pair[1]); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, rows.Err()
}

// watch returns a sequence of what read returns.
func watch[T any](ctx context.Context, c *Cluster, equal func(a, b T) bool, read func(ctx context.Context) (T, error)) iter.Seq2[T, error] {
	return cluster.Feed[T]{
		Read: func(ctx context.Context, _ func()) (T, func(), error) {
			value, err := read(ctx)
			return value, nil, err
		},
		Equal: equal, Gap: c.cfg.Poll / 4, FallbackPoll: c.cfg.Poll, Timeout: c.cfg.Timeout,
	}.Values(ctx)
}
