package testbed_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMovedSlotsKeepTheirKeys(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		cluster := testbedtest.StartCluster(t)
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true})
		defer c.Close()
		owner := map[string]*testbed.Redis{}
		for _, key := range []string{"a", "b", "c{a}"} {
			master, err := cluster.MasterOf(t.Context(), key)
			do(t, err, c.Set(t.Context(), key, "before", 0).Err())
			owner[key] = master
		}
		if slots, keys, err := cluster.MoveSlots(t.Context(), 0); slots != 2 || keys != 3 || err != nil {
			t.Fatalf("moved %d slots with %d keys: %v", slots, keys, err)
		}
		for key, old := range owner {
			if got, err := c.Get(t.Context(), key).Result(); got != "before" || err != nil {
				t.Errorf("%s is %q, %v", key, got, err)
			}
			testbedtest.Eventually(t, "the nodes know the new master of "+key, func() bool {
				master, err := cluster.MasterOf(t.Context(), key)
				return err == nil && master != old
			})
		}
	})
}
