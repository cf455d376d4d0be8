package testbedtest

import (
	"fmt"
	"net"
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// StartSentinel starts Redis behind Sentinel for this test alone.
func StartSentinel(t testing.TB, cfg testbed.SentinelConfig) *testbed.Sentinel {
	t.Helper()
	server, err := testbed.StartSentinel(t.Context(), cfg)
	return started(t, server, err)
}

// StartCluster starts a Redis Cluster for this test alone.
func StartCluster(t testing.TB, cfg testbed.ClusterConfig) *testbed.Cluster {
	t.Helper()
	server, err := testbed.StartCluster(t.Context(), cfg)
	return started(t, server, err)
}

// SellerStatements create a user seller with the password secret, who has all rights in the database of a server and may not write
// to a server that is read-only.
var SellerStatements = []string{"CREATE USER seller@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON " + testbed.DefaultDatabase + ".* TO seller@'%'"}

// StartReplicated starts a MariaDB server and its replica, which is read-only, for this test alone. Both have the user of
// [SellerStatements].
func StartReplicated(t testing.TB) (primary, replica *testbed.MariaDB) {
	t.Helper()
	start := func(id string) *testbed.MariaDB {
		m := StartMariaDB(t, testbed.MariaDBConfig{Vars: map[string]string{"server_id": id, "log_bin": "log", "binlog_format": "ROW", "log_slave_updates": "1"}})
		Exec(t, m, append(SellerStatements, "RESET MASTER")...)
		return m
	}
	primary, replica = start("1"), start("2")
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	Exec(t, replica, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_USE_GTID=slave_pos", host, port),
		"START SLAVE", "SET GLOBAL read_only = 1")
	return primary, replica
}

// Exec runs statements as root.
func Exec(t testing.TB, m *testbed.MariaDB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := OpenSQL(t, m.URL()).ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
