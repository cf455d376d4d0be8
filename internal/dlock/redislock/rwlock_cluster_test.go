package redislock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestRWAndCondOnCluster runs both suites where keys live on three masters and
// pushes are sharded, after one of the masters has failed.
func TestRWAndCondOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	c := testbedtest.StartCluster(t, testbed.ClusterConfig{})
	open := func(t *testing.T) redis.UniversalClient { return watched(t, client(t, clusterURL(c))) }
	old, err := c.KillMasterOf(t.Context(), rwKey("any"))
	if err == nil {
		err = c.WaitForFailover(t.Context(), rwKey("any"), old)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("rw", func(t *testing.T) {
		t.Parallel()
		dlocktest.RunRW(t, rwHarnessOn(t, open))
	})
	t.Run("cond", func(t *testing.T) {
		t.Parallel()
		dlocktest.RunCond(t, condHarnessOn(t, open))
	})
}
