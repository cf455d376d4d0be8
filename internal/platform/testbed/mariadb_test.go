package testbed_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func openDatabase(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = new(mysql.NopLogger) // Lost connections are what the tests are about.
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestMariaDBKeepsCommitsOverKill(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
		db := openDatabase(t, m.DSN())
		mustExec(t, db, "CREATE TABLE t (n INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (1)")
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := db.PingContext(t.Context()); err == nil {
			t.Error("a killed server answers")
		}
		for range 2 { // From killed and from running.
			if err := m.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := count(t, openDatabase(t, m.DSN()), "SELECT COUNT(*) FROM t"); n != 1 {
				t.Errorf("got %d rows, want 1", n)
			}
		}
	})
}

func TestMariaDBVars(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{
			Vars: map[string]string{"innodb_lock_wait_timeout": "7", "max_connections": "33"},
		})
		db := openDatabase(t, m.DSN())
		got := count(t, db, "SELECT 1000*@@innodb_lock_wait_timeout + @@max_connections")
		if got != 7033 {
			t.Errorf("got %d, want lock wait timeout 7 and 33 connections", got)
		}
		if flush := count(t, db, "SELECT @@innodb_flush_log_at_trx_commit"); flush != 1 {
			t.Errorf("innodb_flush_log_at_trx_commit = %d, want 1", flush)
		}
	})
}

func TestMariaDBDatabases(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		m := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{})
		url, err := m.NewDatabase(t.Context(), "extra-one")
		if want := "mysql://root@" + m.Addr() + "/extra-one"; url != want || err != nil {
			t.Fatalf("got %s, %v, want %s", url, err, want)
		}
		var exists *mysql.MySQLError
		if _, err := m.NewDatabase(t.Context(), "extra-one"); !errors.As(err, &exists) {
			t.Errorf("the same name again: got %v", err)
		}
		if err := errors.Join(m.DropDatabase(t.Context(), "extra-one"), m.DropDatabase(t.Context(), "extra-one")); err != nil {
			t.Error(err)
		}
	})
}
