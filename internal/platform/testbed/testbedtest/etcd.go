package testbedtest

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// sharedEtcd has no owner that could close it: its guard ends it with the process.
var sharedEtcd = sync.OnceValues(func() (*testbed.Etcd, error) {
	return testbed.StartEtcd(context.Background(), unflushedEtcd(testbed.EtcdConfig{}))
})

// unflushedEtcd has servers flush nothing: what they have written survives their processes,
// and the disk is not what tests wait for. cfg wins.
func unflushedEtcd(cfg testbed.EtcdConfig) testbed.EtcdConfig {
	cfg.Args = append([]string{"--unsafe-no-fsync"}, cfg.Args...)
	return cfg
}

// Etcd returns the HOST:PORT of an etcd server that other tests use at the same
// time: use keys that no other test uses. With SHOP_TEST_ETCD it is the first of
// the addresses that are there, separated by commas.
func Etcd(t testing.TB) string {
	t.Helper()
	if addresses := os.Getenv("SHOP_TEST_ETCD"); addresses != "" {
		first, _, _ := strings.Cut(addresses, ",")
		return first
	}
	server, err := sharedEtcd()
	require(t, err)
	return server.Addr()
}

// StartEtcd starts an etcd server for this test alone.
func StartEtcd(t testing.TB, cfg testbed.EtcdConfig) *testbed.Etcd {
	t.Helper()
	server, err := testbed.StartEtcd(t.Context(), unflushedEtcd(cfg))
	return started(t, server, err)
}

// StartEtcdCluster starts three etcd servers for this test alone.
func StartEtcdCluster(t testing.TB, cfg testbed.EtcdConfig) *testbed.EtcdCluster {
	t.Helper()
	server, err := testbed.StartEtcdCluster(t.Context(), unflushedEtcd(cfg))
	return started(t, server, err)
}
