package testbedtest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
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

// StartReplicated starts a MariaDB server and its replicas, which are read-only, for this test alone, with variables in addition to
// those that replication needs. All have the user of [SellerStatements]. A server that is restarted is read-only.
func StartReplicated(t testing.TB, n int, vars map[string]string) []*testbed.MariaDB {
	t.Helper()
	all := make([]*testbed.MariaDB, n)
	for i := range all {
		own := map[string]string{"server_id": strconv.Itoa(i + 1), "log_bin": "log", "binlog_format": "ROW", "log_slave_updates": "1", "read_only": "1"}
		maps.Copy(own, vars)
		all[i] = StartMariaDB(t, testbed.MariaDBConfig{Vars: own})
		Exec(t, all[i], slices.Concat(SellerStatements, []string{"RESET MASTER"})...)
		if i > 0 {
			Replicate(t, all[i], all[0])
		}
	}
	Exec(t, all[0], "SET GLOBAL read_only = 0")
	return all
}

// Replicate lets a server replicate from another one.
func Replicate(t testing.TB, replica, from *testbed.MariaDB) {
	t.Helper()
	host, port, err := net.SplitHostPort(from.Addr())
	if err != nil {
		t.Fatal(err)
	}
	Exec(t, replica, "STOP SLAVE", fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_USE_GTID=slave_pos", host, port),
		"START SLAVE")
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
