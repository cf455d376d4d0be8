package sqltimers_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/timeout"
)

// Rows are locked in the order of their keys, whatever the order of the arguments. So a transaction that waits for the
// first of two timers does not hold the second. Nothing retries a deadlock in a caller's transaction.
func TestRowsAreLockedInOrder(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, s timeout.Store, tx timeout.Tx, ids []string) error{
		"insert": func(ctx context.Context, s timeout.Store, tx timeout.Tx, ids []string) error {
			return s.Insert(ctx, tx, timeout.Base, "", timersOf(ids))
		},
		"delete": func(ctx context.Context, s timeout.Store, tx timeout.Tx, ids []string) error {
			_, err := s.Delete(ctx, tx, kind, ids, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := openMariaDB(t, testbedtest.Database(t), func(c *mysql.Config) { c.Params["innodb_lock_wait_timeout"] = "50" })
			c := client(t, db, sqldb.MariaDB())
			insert(t, c, time.UnixMilli(1e12), 0, []string{"a", "b"})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := func() *sql.Tx {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() })
				return tx
			}
			first, second := begin(), begin()
			if err := change(ctx, c, first, []string{"a"}); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() { waited <- change(ctx, c, second, []string{"b", "a"}) }()
			lockWait(ctx, t, db)
			if err := change(ctx, c, first, []string{"b"}); err != nil {
				t.Errorf("the one that came first: %v", err)
			}
			if err := first.Commit(); err != nil {
				t.Error(err)
			}
			if err := <-waited; err != nil {
				t.Errorf("the one that waited: %v", err)
			}
		})
	}
}

// lockWait returns once somebody waits for a row on the server, which no other test uses
// meanwhile, as this one is not parallel.
func lockWait(ctx context.Context, t *testing.T, db *sql.DB) {
	t.Helper()
	for n := 0; n == 0; {
		var name string
		err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&name, &n)
		if err != nil {
			t.Fatal(err)
		}
	}
}
