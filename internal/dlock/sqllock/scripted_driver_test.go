package sqllock_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func scripted(t testing.TB) (*sqllock.Locker, *testbedtest.SQLScript, *sqllock.Locker, *sql.DB) {
	t.Helper()
	return scriptedFor(t, ttl)
}

// scriptedFor returns a Locker on MariaDB whose statements fail as scripted, a Locker without failures, and a pool.
func scriptedFor(t testing.TB, ttl time.Duration) (*sqllock.Locker, *testbedtest.SQLScript, *sqllock.Locker, *sql.DB) {
	t.Helper()
	st := mariaDB(testbedtest.Database(t))
	pool, s := st.create(t), new(testbedtest.SQLScript)
	st.wrap = s.Wrap
	faulty := st.locker(t, sqllock.Config{TTL: ttl})
	st.wrap = nil
	return faulty, s, st.locker(t, sqllock.Config{TTL: ttl}), pool
}

func refused(number uint16) error { return &mysql.MySQLError{Number: number, Message: "of a test"} }
