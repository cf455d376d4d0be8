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

// A COMMIT to which a server gives no answer ends soon after the deadline of its transaction, whatever limit its session has. Its outcome is unknown,
// and no other work gets its connection.
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
			go func() { ended <- tx.Commit() }()
			select {
			case err = <-ended:
			case <-time.After(time.Minute):
				t.Error("COMMIT has not ended a minute after the server was paused")
			}
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
			if sqldb.Classify(err) != sqldb.Lost || sqldb.RolledBack(err) || sqldb.Unchanged(err) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("COMMIT: %v", err)
			}
			if err := db.PingContext(t.Context()); err != nil {
				t.Errorf("the next connection: %v", err)
			}
		})
	}
}
