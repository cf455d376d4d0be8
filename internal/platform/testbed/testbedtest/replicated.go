package testbedtest

import (
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
