package timeout_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/glebarez/go-sqlite"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
	"example.com/shop/internal/timeout/sqltimers"
)

// shop is a database with orders and their timers.
type shop struct {
	t  *testing.T
	db *sql.DB
}

func newShop(t *testing.T) shop {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+
		"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := shop{t, db}
	for _, statement := range append(sqltimers.Schema(sqldb.SQLite()),
		"CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT NOT NULL, expired INTEGER NOT NULL DEFAULT 0)") {
		s.exec(db, statement)
	}
	return s
}

func (s shop) exec(tx timeout.Tx, query string, args ...any) {
	s.t.Helper()
	if _, err := tx.ExecContext(s.t.Context(), query, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, query)
	}
}

// queue is an instance: another process would have an index of its own as well.
func (s shop) queue(cfg timeout.Config) *timeout.Queue {
	s.t.Helper()
	store, err := sqltimers.New(s.db, sqldb.SQLite())
	if err != nil {
		s.t.Fatal(err)
	}
	q, err := timeout.New(store, memindex.New(memindex.Config{}), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

// run runs q until the end of the test.
func (s shop) run(q *timeout.Queue) {
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("Run = %v", err)
		}
	})
}

// place stores an order and its timer in one transaction, which commits or does not.
func (s shop) place(q *timeout.Queue, id string, due time.Time, commit bool) {
	s.t.Helper()
	tx, err := s.db.BeginTx(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	defer tx.Rollback()
	s.exec(tx, "INSERT INTO orders (id, status) VALUES (?, 'PENDING')", id)
	push, err := q.Schedule(s.t.Context(), tx, timeout.Timer{Kind: kind, ID: id, Due: due})
	if err != nil {
		s.t.Fatal(err)
	}
	if commit {
		if err := tx.Commit(); err != nil {
			s.t.Fatal(err)
		}
		push()
	}
}

// expire is the handler of the manual: one transaction for the whole batch, the row
// decides, and the timers go with what they were for.
func (s shop) expire(q *timeout.Queue) timeout.Handler {
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return nil, errors.Join(timeout.ErrUnavailable, err)
		}
		defer tx.Rollback()
		out, ids := make([]timeout.Outcome, len(batch)), make([]string, len(batch))
		for i, f := range batch {
			_, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'EXPIRED', expired = expired + 1 WHERE id = ? AND status = 'PENDING'", f.ID)
			if err != nil {
				return nil, err
			}
			out[i], ids[i] = timeout.Committed(), f.ID
		}
		if err := q.Cancel(ctx, tx, kind, ids...); err != nil {
			return nil, err
		}
		return out, tx.Commit()
	}
}

// count returns how many orders there are in a state.
func (s shop) count(where string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRowContext(s.t.Context(), "SELECT COUNT(*) FROM orders WHERE "+where).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// wait waits for a condition.
func (s shop) wait(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain until %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestOnSQLite(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	count := newCounter()
	q := s.queue(timeout.Config{Observer: count})
	if err := q.Handle(kind, s.expire(q), timeout.Options{}); err != nil {
		t.Fatal(err)
	}
	s.run(q)
	due := time.Now().Add(500 * time.Millisecond)
	for i, id := range ids(60) {
		s.place(q, id, due, i%3 > 0) // a third is rolled back
	}
	paid, _ := ids(60)[1], due
	s.exec(s.db, "UPDATE orders SET status = 'PAID' WHERE id = ?", paid)
	if err := q.Cancel(t.Context(), nil, kind, paid); err != nil {
		t.Fatal(err)
	}
	if n := s.count("status = 'EXPIRED'"); n > 0 && time.Now().Before(due) {
		t.Errorf("%d orders expired before they were due", n)
	}
	s.wait("39 orders have expired", func() bool { return s.count("status = 'EXPIRED'") == 39 })
	if time.Now().Before(due) {
		t.Error("the orders expired before they were due")
	}
	s.wait("no timer is left", func() bool {
		rows, err := q.List(t.Context(), timeout.Filter{})
		return err == nil && len(rows) == 0
	})
	if s.count("expired > 1") > 0 || s.count("status = 'PAID'") != 1 {
		t.Error("an order expired twice, or was paid and expired")
	}
}

// An index of one process ends with it. Its timers are fired by other processes, and by itself after a restart.
func TestOnSQLiteWithoutItsScheduler(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	gone := s.queue(timeout.Config{})
	now := time.Now()
	s.place(gone, "past", now.Add(-time.Second), true) // which no pass puts
	s.place(gone, "soon", now.Add(3*time.Second), true)
	count := newCounter()
	q := s.queue(timeout.Config{Observer: count})
	if err := q.Handle(kind, s.expire(q), timeout.Options{}); err != nil {
		t.Fatal(err)
	}
	s.run(q) // it begins with an empty index
	s.wait("both orders have expired", func() bool { return s.count("status = 'EXPIRED'") == 2 })
	s.place(gone, "other", time.Now(), true) // by another instance, which dies
	s.wait("the overdue scan has found it", func() bool { return s.count("status = 'EXPIRED'") == 3 })
	if n := count.repaired(timeout.RepairOverdue); n < 2 {
		t.Errorf("overdue scans claimed %d timers, want at least 2", n)
	}
}

func TestDeadOnSQLite(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	q := s.queue(timeout.Config{})
	poison := func(context.Context, []timeout.Fired) ([]timeout.Outcome, error) { panic("poison") }
	if err := q.Handle(kind, poison, timeout.Options{Attempts: 2, Backoff: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	s.run(q)
	s.place(q, "a", time.Now(), true)
	s.wait("it is dead", func() bool {
		row, err := q.Get(t.Context(), kind, "a")
		return err == nil && row.State == timeout.Dead
	})
	stats, err := q.Stats(t.Context())
	if err != nil || len(stats) != 1 || stats[0].Dead != 1 || stats[0].Open != 0 {
		t.Errorf("Stats = %+v, %v", stats, err)
	}
	if n, err := q.Redrive(t.Context(), kind); n != 1 || err != nil {
		t.Errorf("Redrive = %d, %v", n, err)
	}
}
