package testbedtest

import (
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// StartSentinel starts Redis behind Sentinel for this test alone.
func StartSentinel(t testing.TB) *testbed.Sentinel {
	t.Helper()
	server, err := testbed.StartSentinel(t.Context())
	return started(t, server, err)
}

// StartCluster starts a Redis Cluster for this test alone.
func StartCluster(t testing.TB) *testbed.Cluster {
	t.Helper()
	server, err := testbed.StartCluster(t.Context())
	return started(t, server, err)
}

// StartReplicated starts a MariaDB server and its replicas for this test alone, as [testbed.StartReplicated] does.
func StartReplicated(t testing.TB, n int, vars map[string]string) []*testbed.MariaDB {
	t.Helper()
	servers, err := testbed.StartReplicated(t.Context(), n, vars)
	return started(t, servers, err).Nodes()
}

// Replicate lets a server replicate from another one.
func Replicate(t testing.TB, replica, from *testbed.MariaDB) {
	t.Helper()
	if err := replica.Replicate(t.Context(), from); err != nil {
		t.Fatal(err)
	}
}

// Exec executes statements as root.
func Exec(t testing.TB, m *testbed.MariaDB, statements ...string) {
	t.Helper()
	if err := m.Exec(t.Context(), statements...); err != nil {
		t.Fatal(err)
	}
}

// StartVitess starts two shards over a server for this test alone, as [testbed.StartVitess] does.
func StartVitess(t testing.TB, folder string, over *testbed.MariaDB) *testbed.Vitess {
	t.Helper()
	v, err := testbed.StartVitess(t.Context(), folder, over)
	return started(t, v, err)
}
