package faults_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
	"example.com/shop/internal/timeout/sqltimers"
)

// nodeConfig configures an instance, also one in a process of its own.
type nodeConfig struct {
	Name     string
	Database string
	Redis    string
	Canary   bool
	Hold     time.Duration // how long the handler takes before it begins
	Options  timeout.Options

	index   func(timeout.Index) timeout.Index // what the instance has in place of its index
	store   func(timeout.Store) timeout.Store // what the instance has in place of its store
	handler func(*node) timeout.Handler       // in place of expire
}

// node is an instance.
type node struct {
	*timeout.Queue
	cfg     nodeConfig
	db      *sql.DB
	rdb     redis.UniversalClient
	seen    *tally
	holding func() // the handler has begun to wait
}

const dbTime = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// newNode connects an instance to everything. The caller closes it.
func newNode(cfg nodeConfig) (*node, error) {
	n := &node{cfg: cfg, seen: newTally(), holding: func() {}}
	var err error
	if n.db, err = open(cfg.Database); err != nil {
		return nil, err
	}
	store, err := sqltimers.New(n.db, sqldb.MariaDB())
	if err != nil {
		return nil, err
	}
	if n.rdb, err = redisclient.New(cfg.Redis); err != nil {
		return nil, err
	}
	index, err := redisindex.New(n.rdb, redisindex.Config{Shards: 2})
	if err != nil {
		return nil, err
	}
	var x timeout.Index = index
	if cfg.index != nil {
		x = cfg.index(x)
	}
	var rows timeout.Store = store
	if cfg.store != nil {
		rows = cfg.store(rows)
	}
	n.Queue, err = timeout.New(rows, x, timeout.Config{
		Instance: cfg.Name, Canary: cfg.Canary, Observer: n.seen, Drain: patience,
	})
	if err != nil {
		return nil, err
	}
	h := n.expire
	if cfg.handler != nil {
		h = cfg.handler(n)
	}
	return n, n.Handle(kind, h, cfg.Options)
}

func (n *node) close() error { return errors.Join(n.rdb.Close(), n.db.Close()) }

// expire is a handler as it should be, but for one thing: it leaves it to the queue
// that nothing is early. The rows of the orders come first, in the order of their ids, and the shelves last.
func (n *node) expire(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
	if n.cfg.Hold > 0 {
		n.holding()
		<-time.After(n.cfg.Hold)
	}
	ids := make([]string, len(batch))
	out := make([]timeout.Outcome, len(batch))
	for i, f := range batch {
		ids[i], out[i] = f.ID, timeout.Committed()
	}
	slices.Sort(ids)
	err := n.transact(ctx, func(tx *sql.Tx) (func(), error) { return n.expireIn(ctx, tx, ids) })
	if err != nil { // of a database that is busy or away, whatever the timers are
		return nil, fmt.Errorf("%w: %w", timeout.ErrUnavailable, err)
	}
	return out, nil
}

func (n *node) expireIn(ctx context.Context, tx *sql.Tx, ids []string) (func(), error) {
	marks, args := in(ids)
	rows, err := tx.QueryContext(ctx, "SELECT id, shelf FROM orders WHERE id IN ("+marks+") AND status = 'PENDING' ORDER BY id FOR UPDATE", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var open []string
	var units [shelves]int
	for rows.Next() {
		var id string
		var shelf int
		if err := rows.Scan(&id, &shelf); err != nil {
			return nil, err
		}
		open = append(open, id)
		units[shelf]++
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	if len(open) > 0 {
		marks, args := in(open)
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'EXPIRED' WHERE id IN ("+marks+")", args...); err != nil {
			return nil, err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO effects (id, node, at) SELECT id, ?, "+dbTime+" FROM orders WHERE id IN ("+marks+")",
			append([]any{n.cfg.Name}, args...)...); err != nil {
			return nil, err
		}
	}
	if err := n.Cancel(ctx, tx, kind, ids...); err != nil {
		return nil, err
	}
	for shelf, count := range units {
		if count > 0 {
			if _, err := tx.ExecContext(ctx, "UPDATE shelves SET reserved = reserved - ? WHERE shelf = ?", count, shelf); err != nil {
				return nil, err
			}
		}
	}
	return func() {}, nil
}

// place stores orders that expire at a moment, each with its timer, in one transaction.
func (n *node) place(ctx context.Context, shelf int, due time.Time, ids ...string) error {
	return n.transact(ctx, func(tx *sql.Tx) (func(), error) { return n.placeIn(ctx, tx, shelf, due, ids...) })
}

func (n *node) placeIn(ctx context.Context, tx *sql.Tx, shelf int, due time.Time, ids ...string) (func(), error) {
	timers := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		timers[i] = timeout.Timer{Kind: kind, ID: id, Due: due}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?, ?, ?, 'PENDING')", id, shelf, due.UnixMicro()); err != nil {
			return nil, err
		}
	}
	push, err := n.Schedule(ctx, tx, timers...)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "UPDATE shelves SET reserved = reserved + ? WHERE shelf = ?", len(ids), shelf)
	return push, err
}

// transact commits what f does, and pushes. A deadlock, or a lock that takes too long, is nobody's fault.
func (n *node) transact(ctx context.Context, f func(*sql.Tx) (func(), error)) error {
	for try := 0; ; try++ {
		push, err := n.attempt(ctx, f)
		if err == nil {
			push()
			return nil
		}
		e, ok := errors.AsType[*mysql.MySQLError](err)
		if !ok || e.Number != 1213 && e.Number != 1205 || try == 5 {
			return err
		}
	}
}

func (n *node) attempt(ctx context.Context, f func(*sql.Tx) (func(), error)) (func(), error) {
	tx, err := n.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	push, err := f(tx)
	if err != nil {
		return nil, err
	}
	return push, tx.Commit()
}

// in returns the placeholders and arguments of a list.
func in(ids []string) (marks string, args []any) {
	args = make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return strings.TrimSuffix(strings.Repeat("?,", len(ids)), ","), args
}
