package sqltimers_test

import (
	"database/sql"
	"testing"
	"time"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The clock of the database was set back by a day after the only instance of a partition had died. Its last heartbeat lies in
// the future, and is none: the timers get another partition at once.
func TestHeartbeatInTheFutureIsNone(t *testing.T) {
	t.Parallel()
	for _, e := range []*sqldb.Engine{sqldb.SQLite(), sqldb.MariaDB()} {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			var db *sql.DB
			if e.OneWriter {
				db = openSQLite(t, "_txlock=immediate&"+pragmas)
			} else {
				db = openMariaDB(t, testbedtest.Database(t), nil)
			}
			c := client(t, db, e)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Insert(t.Context(), tx, "gone", "", timersOf([]string{"a"})); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := c.Heartbeat(t.Context(), "gone", "one"); err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{0, 1} {
				if n, err := c.Reassign(t.Context(), time.Hour, 100); n != want || err != nil {
					t.Errorf("reassigned %d, %v; want %d", n, err, want)
				}
				if _, err := db.ExecContext(t.Context(), "UPDATE timeout_lanes SET seen_at = seen_at + 86400000"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
