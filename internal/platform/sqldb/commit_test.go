package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// pausable is a server that can stand still.
type pausable interface {
	URL() string
	Pause() error
	Resume() error
}

// A COMMIT or ROLLBACK to which a server gives no answer ends soon after the deadline of its transaction, whatever limit its session has. The outcome of
// COMMIT is unknown, and no other work gets the connection.
func TestCommitEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]pausable{
		"MariaDB":    testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}),
		"PostgreSQL": testbedtest.StartPostgres(t, testbed.PostgresConfig{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := sqldb.Open(t.Context(), server.URL(), sqldb.AccessCreate)
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(d.Unhurried)
			t.Cleanup(func() { db.Close() })
			db.SetMaxOpenConns(1)
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n INT)"); err != nil {
				t.Fatal(err)
			}
			if err := endsInTime(t, server, db, (*sql.Tx).Commit); sqldb.Classify(err) != sqldb.Lost || sqldb.RolledBack(err) || sqldb.Unchanged(err) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("COMMIT: %v", err)
			}
			if err := endsInTime(t, server, db, (*sql.Tx).Rollback); err == nil {
				t.Error("ROLLBACK: no error")
			}
			if err := db.PingContext(t.Context()); err != nil {
				t.Errorf("the next connection: %v", err)
			}
		})
	}
}

// endsInTime ends a transaction of 5 s while the server is paused, and returns the error.
func endsInTime(t *testing.T, server pausable, db *sql.DB, end func(*sql.Tx) error) (err error) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tx, err := db.BeginTx(limited, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(limited, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- end(tx) }()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Error("the transaction has not ended a minute after the server was paused")
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	return err
}

// A customer who leaves within a transaction costs its connection alone: idle ones to the same server stay.
func TestCallerWhoLeavesCostsOneConnection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ url, session, wait string }{
		"MariaDB":    {testbedtest.Database(t), "SELECT CONNECTION_ID()", "SELECT SLEEP(2)"},
		"PostgreSQL": {testbedtest.Postgres(t), "SELECT pg_backend_pid()", "SELECT pg_sleep(2)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := sqldb.Open(t.Context(), c.url, sqldb.AccessCreate)
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(d.Usual)
			t.Cleanup(func() { db.Close() })
			session := func() (id int) {
				t.Helper()
				if err := db.QueryRowContext(t.Context(), c.session).Scan(&id); err != nil {
					t.Fatal(err)
				}
				return id
			}
			ctx, leave := context.WithCancel(t.Context())
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
				t.Fatal(err)
			}
			idle := session()
			time.AfterFunc(100*time.Millisecond, leave)
			if err := tx.QueryRowContext(ctx, c.wait).Scan(new(any)); err == nil {
				t.Error("a statement outlasts its caller")
			}
			_ = tx.Rollback() // or database/sql has begun that
			testbedtest.Eventually(t, "the transaction has ended", func() bool { return db.Stats().InUse == 0 })
			if now := session(); now != idle {
				t.Errorf("session %d, and %d before", now, idle)
			}
		})
	}
}
