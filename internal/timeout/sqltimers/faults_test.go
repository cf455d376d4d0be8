package sqltimers_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/sqltimers"
)

// faulty returns a store on MariaDB whose statements fail as the script says, and one whose do not.
func faulty(t *testing.T) (broken, sane timeout.Store, s *testbedtest.SQLScript, pool *sql.DB) {
	t.Helper()
	address := testbedtest.Database(t)
	sane = client(t, openMariaDB(t, address, nil), sqldb.MariaDB())
	s = new(testbedtest.SQLScript)
	pool = sql.OpenDB(s.Wrap(connectorTo(t, address, nil)))
	t.Cleanup(func() { pool.Close() })
	broken, err := sqltimers.New(pool, sqldb.MariaDB())
	if err != nil {
		t.Fatal(err)
	}
	return broken, sane, s, pool
}

func refused(number uint16) error { return &mysql.MySQLError{Number: number, Message: "of a test"} }

func timersOf(ids []string) []timeout.Timer {
	timers := make([]timeout.Timer, len(ids))
	for i, id := range ids {
		timers[i] = timeout.Timer{Kind: kind, ID: id, Due: time.UnixMilli(1e12)}
	}
	return timers
}

// A transient error is retried from the start, and not forever.
func TestTransientErrorsAreRetried(t *testing.T) {
	t.Parallel()
	store, sane, s, _ := faulty(t)
	ctx := t.Context()
	for _, number := range []uint16{1205, 1213, 1020} {
		insert(t, sane, time.UnixMilli(1e12), 0, []string{"a"})
		s.Play(func(n int, statement string) error {
			if n < 5 && strings.HasPrefix(statement, "UPDATE") {
				return refused(number) // after the SELECT of each transaction
			}
			return nil
		}, nil)
		claimed, err := store.ClaimOverdue(ctx, kind, timeout.Base, time.Now(), time.Now(), 10)
		if err != nil || len(claimed) != 1 || claimed[0].Attempt != 1 {
			t.Errorf("%d: claimed %v, %v; want the timer once", number, claimed, err)
		}
		s.Play(func(int, string) error { return refused(number) }, nil)
		_, err = store.Delete(ctx, nil, kind, []string{"a"}, nil)
		if !errors.Is(err, timeout.ErrUnavailable) || len(s.Sent()) != 6 {
			t.Errorf("%d: %v after %d tries, want ErrUnavailable after 6", number, err, len(s.Sent()))
		}
		_, err = store.List(ctx, timeout.Filter{})
		if !errors.Is(err, timeout.ErrUnavailable) {
			t.Errorf("%d: %v, want ErrUnavailable", number, err)
		}
	}
}

func TestOtherErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	store, _, s, _ := faulty(t)
	s.Play(func(int, string) error { return refused(1064) }, nil)
	err := store.Insert(t.Context(), nil, timeout.Base, "", timersOf([]string{"a"}))
	if err == nil || errors.Is(err, timeout.ErrUnavailable) || len(s.Sent()) != 1 {
		t.Errorf("%v after %d tries, want another error after 1", err, len(s.Sent()))
	}
	s.Play(func(int, string) error { return refused(1290) }, nil) // read only: no use to try again at once
	err = store.Insert(t.Context(), nil, timeout.Base, "", timersOf([]string{"a"}))
	if !errors.Is(err, timeout.ErrUnavailable) || len(s.Sent()) != 1 {
		t.Errorf("%v after %d tries, want ErrUnavailable after 1", err, len(s.Sent()))
	}
}

// The owner of a transaction learns that it has to begin again.
func TestNoRetryInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	store, _, s, pool := faulty(t)
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	s.Play(func(int, string) error { return refused(1213) }, nil)
	err = store.Insert(t.Context(), tx, timeout.Base, "", timersOf([]string{"a"}))
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok || e.Number != 1213 || len(s.Sent()) != 1 {
		t.Errorf("%v after %d tries, want the deadlock after 1", err, len(s.Sent()))
	}
}

// A call that takes several statements has all of its effect, or none.
func TestFailureInTheMiddleLeavesNothing(t *testing.T) {
	t.Parallel()
	store, sane, s, _ := faulty(t)
	ids := numbered(1200)
	second := func(n int, _ string) error {
		if n == 1 {
			return refused(1064)
		}
		return nil
	}
	s.Play(second, nil)
	err := store.Insert(t.Context(), nil, timeout.Base, "", timersOf(ids))
	rows, _, loadErr := sane.Load(t.Context(), kind, ids)
	if err == nil || len(rows) != 0 || loadErr != nil {
		t.Errorf("insert: %v, and %d rows are stored, %v; want none", err, len(rows), loadErr)
	}
	insert(t, sane, time.UnixMilli(1e12), 0, ids)
	s.Play(second, nil)
	n, err := store.Delete(t.Context(), nil, kind, ids, nil)
	rows, _, loadErr = sane.Load(t.Context(), kind, ids)
	if err == nil || n != 0 || len(rows) != len(ids) || loadErr != nil {
		t.Errorf("delete: %d, %v, and %d rows are left, %v; want all", n, err, len(rows), loadErr)
	}
}

// Every request to a database that is unavailable returns ErrUnavailable.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	address := testbedtest.Database(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, u.Host)
	u.Host = proxy.Addr()
	store := client(t, openMariaDB(t, u.String(), nil), sqldb.MariaDB())
	calls := func(ctx context.Context) map[string]error {
		errs := make(map[string]error)
		now := time.Now()
		later := []timeout.Later{{ID: "a"}}
		_, errs["now"] = store.Now(ctx)
		errs["insert"] = store.Insert(ctx, nil, timeout.Base, "", timersOf([]string{"a"}))
		_, errs["delete"] = store.Delete(ctx, nil, kind, []string{"a"}, []time.Time{now})
		_, errs["move"] = store.Move(ctx, nil, kind, "a", now)
		_, _, errs["load"] = store.Load(ctx, kind, []string{"a"})
		_, _, errs["load nothing"] = store.Load(ctx, kind, nil)
		errs["delay"] = store.Delay(ctx, kind, later)
		errs["bury"] = store.MarkDead(ctx, kind, later)
		_, errs["sweep"] = store.ClaimOverdue(ctx, kind, timeout.Base, now, now, 1)
		_, errs["list"] = store.List(ctx, timeout.Filter{})
		_, errs["count"] = store.Count(ctx)
		_, errs["redrive"] = store.Redrive(ctx, kind, []string{"a"})
		errs["pause"] = store.SetPaused(ctx, kind, true)
		_, errs["paused"] = store.Paused(ctx)
		errs["beat"] = store.Heartbeat(ctx, timeout.Base, "a")
		_, errs["reassign"] = store.Reassign(ctx, time.Minute, 1)
		return errs
	}
	proxy.Refuse()
	for call, err := range calls(t.Context()) {
		if !errors.Is(err, timeout.ErrUnavailable) {
			t.Errorf("%s while it refuses: %v, want ErrUnavailable", call, err)
		}
	}
	if err := proxy.Pass(); err != nil {
		t.Fatal(err)
	}
	proxy.BlackHole()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for call, err := range calls(ctx) {
		if !errors.Is(err, timeout.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s while it is silent: %v, want ErrUnavailable and the deadline", call, err)
		}
	}
}

// Another process writes to the file: a writer waits for a while, and then says why.
func TestBusyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "timers.db")
	const query = "_txlock=immediate&_pragma=busy_timeout(1)&_pragma=journal_mode(WAL)"
	store := client(t, openSQLiteFile(t, file, query), sqldb.SQLite())
	other, err := openSQLiteFile(t, file, query).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = store.Insert(t.Context(), nil, timeout.Base, "", timersOf([]string{"a"}))
	if !errors.Is(err, timeout.ErrUnavailable) {
		t.Errorf("insert: %v, want ErrUnavailable", err)
	}
	if _, err := store.ClaimOverdue(t.Context(), kind, timeout.Base, time.Now(), time.Now(), 1); !errors.Is(err, timeout.ErrUnavailable) {
		t.Errorf("sweep: %v, want ErrUnavailable", err)
	}
	if _, err := store.List(t.Context(), timeout.Filter{}); err != nil {
		t.Errorf("list alongside a writer: %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := store.Insert(t.Context(), nil, timeout.Base, "", timersOf([]string{"a"})); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := sqltimers.New(nil, sqldb.SQLite()); err == nil {
		t.Error("New accepts no database")
	}
	if _, err := sqltimers.New(openSQLite(t, ""), nil); err == nil {
		t.Error("New accepts no engine")
	}
}
