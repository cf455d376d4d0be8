package testbedtest

import (
	"context"
	"os"
	"sync"
	"testing"

	"example.com/shop/internal/platform/testbed"
)

// sharedZooKeeper has no owner that could close it: its guard ends it with the process.
var sharedZooKeeper = sync.OnceValues(func() (*testbed.ZooKeeper, error) {
	return testbed.StartZooKeeper(context.Background(), unflushedZooKeeper(testbed.ZooKeeperConfig{}))
})

// unflushedZooKeeper is for ZooKeeper what unflushedEtcd is for etcd.
func unflushedZooKeeper(cfg testbed.ZooKeeperConfig) testbed.ZooKeeperConfig {
	cfg.Settings = append([]string{"forceSync=no"}, cfg.Settings...)
	return cfg
}

// ZooKeeper returns the HOST:PORT of a ZooKeeper server that other tests use at the
// same time: use nodes that no other test uses. SHOP_TEST_ZOOKEEPER names another
// one, which must allow sessions of one second.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	if address := os.Getenv("SHOP_TEST_ZOOKEEPER"); address != "" {
		return address
	}
	server, err := sharedZooKeeper()
	require(t, err)
	return server.Addr()
}

// StartZooKeeper starts a ZooKeeper server for this test alone.
func StartZooKeeper(t testing.TB, cfg testbed.ZooKeeperConfig) *testbed.ZooKeeper {
	t.Helper()
	server, err := testbed.StartZooKeeper(t.Context(), unflushedZooKeeper(cfg))
	return started(t, server, err)
}

// StartZooKeeperEnsemble starts three ZooKeeper servers for this test alone.
func StartZooKeeperEnsemble(t testing.TB, cfg testbed.ZooKeeperConfig) *testbed.ZooKeeperEnsemble {
	t.Helper()
	server, err := testbed.StartZooKeeperEnsemble(t.Context(), unflushedZooKeeper(cfg))
	return started(t, server, err)
}
