package sqldb_test

import (
	"database/sql"
	"database/sql/driver"
	"maps"
	"strings"
	"testing"

	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// hostile starts a server whose own settings break the code in one way each.
func hostile(t *testing.T) *testbed.MariaDB {
	t.Helper()
	vars := map[string]string{
		"autocommit": "0", "sql_mode": "ANSI,NO_BACKSLASH_ESCAPES", "completion_type": "CHAIN",
		"transaction_isolation": "SERIALIZABLE", "default_time_zone": "+03:00", "innodb_lock_wait_timeout": "50",
		"character_set_server": "latin1", "log_bin": "log", "binlog_format": "ROW",
	}
	if !onMySQL(t) {
		maps.Copy(vars, map[string]string{
			"sql_mode": "ORACLE,EMPTY_STRING_IS_NULL", "sql_safe_updates": "1", "skip_character_set_client_handshake": "1",
		})
	}
	return testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: vars})
}

// A session has the settings on which the code relies, whatever those of the server are.
func TestSessionsSetWhatTheCodeReliesOn(t *testing.T) {
	t.Parallel()
	server := hostile(t)
	d, err := sqldb.Open(t.Context(), server.URL(), sqldb.AccessCreate)
	if err != nil {
		t.Fatal(err)
	}
	engine, isolation, idle, longest, limit, tables := "mariadb", "tx_isolation", "idle_transaction_timeout", "max_statement_time", "3", "86400"
	if onMySQL(t) {
		engine, isolation, idle, longest, limit, tables = "mysql", "transaction_isolation", "wait_timeout", "max_execution_time", "3000", "31536000"
	}
	if d.Name != engine || !d.Scripts || !d.LocksReachAllWriters {
		t.Errorf("%s, %+v", d.Name, d.Facts)
	}
	for name, c := range map[string]struct {
		connector driver.Connector
		longest   string
		tables    string
	}{"usual": {d.Usual, limit, "2"}, "single": {d.Single, limit, "2"}, "unhurried": {d.Unhurried, "0", tables}} {
		pool := sql.OpenDB(c.connector)
		defer pool.Close()
		for setting, want := range map[string]string{
			"autocommit": "1", "completion_type": "NO_CHAIN", "sql_safe_updates": "0", isolation: "READ-COMMITTED",
			"sql_mode":  "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
			"time_zone": "+00:00", "innodb_lock_wait_timeout": "2", idle: "2", longest: c.longest, "lock_wait_timeout": c.tables,
			"character_set_client": "utf8mb4", "character_set_results": "utf8mb4", "character_set_connection": "utf8mb4",
			"collation_connection": "utf8mb4_general_ci",
		} {
			var got string
			if err := pool.QueryRowContext(t.Context(), "SELECT @@"+setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, want %q; %v", name, setting, got, want, err)
			}
		}
	}
}

// A server that refuses every write of the code is refused when it is opened, with the setting that has to change.
func TestLogOfStatementsIsRefused(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"log_bin": "log", "binlog_format": "STATEMENT"}})
	_, err := sqldb.Open(t.Context(), server.URL(), sqldb.AccessCreate)
	if err == nil || !strings.Contains(err.Error(), "set binlog_format=ROW") {
		t.Errorf("a server that logs statements: %v", err)
	}
}

// TestSeveralPrimariesAreRefused needs MySQL, which `make engines` has.
func TestSeveralPrimariesAreRefused(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{
		"loose_plugin_load_add": "group_replication.so", "loose_group_replication_single_primary_mode": "OFF",
	}})
	if _, err := sqldb.Open(t.Context(), server.URL(), sqldb.AccessCreate); isMySQL(t, server) != (err != nil && strings.Contains(err.Error(), "several primaries")) {
		t.Errorf("a member of a group with several primaries: %v", err)
	}
}

// onMySQL reports whether the shared server is MySQL, as make engines has it, and not MariaDB.
func onMySQL(t *testing.T) bool {
	t.Helper()
	var version string
	if err := testbedtest.OpenSQL(t, testbedtest.Database(t)).QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(version, "MariaDB")
}

func isMySQL(t *testing.T, server *testbed.MariaDB) bool {
	t.Helper()
	mysql, err := server.IsMySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return mysql
}
