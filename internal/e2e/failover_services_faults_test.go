package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// failover is what a fault may take until the service has recovered: after a pause of the machine sentinels do nothing for half a minute.
const failover = 4 * time.Minute

// during runs f, which must succeed in time.
func during(t *testing.T, f func(ctx context.Context) error) func() {
	t.Helper()
	return func() {
		ctx, cancel := context.WithTimeout(t.Context(), failover)
		defer cancel()
		must(t, f(ctx))
	}
}

// serving describes a lock service that runs. Each instance has another of its hosts, which are in the form, as the first.
func serving(t *testing.T, strategies []string, flag, form string, hosts []string, faults []engineFault) *servers {
	t.Helper()
	database := testbedtest.Database(t)
	all := &servers{nodes: []string{database}, strategies: strategies, faults: faults, usual: len(faults)}
	for i := range all.databases {
		all.databases[i] = database
		all.flags[i] = []string{flag, fmt.Sprintf(form, strings.Join(slices.Concat(hosts[i:], hosts[:i]), ","))}
	}
	return all
}

func startUnderSentinel(t *testing.T) *servers {
	t.Helper()
	s := testbedtest.StartSentinel(t)
	var old *testbed.Redis
	replaced := func(harm func(*testbed.Redis) error) func() {
		return during(t, func(ctx context.Context) (err error) {
			if old, err = s.Master(ctx); err != nil {
				return err
			}
			if err := harm(old); err != nil {
				return err
			}
			return s.WaitForFailover(ctx, old)
		})
	}
	returns := func(mend func(context.Context) error) func() {
		return during(t, func(ctx context.Context) error {
			if err := mend(ctx); err != nil {
				return err
			}
			return s.WaitReady(ctx)
		})
	}
	return serving(t, []string{"redis", "redis-cohort", "lua"}, "--redis", "redis+sentinel://%s/"+s.MasterName(), s.SentinelAddrs(), []engineFault{
		{
			name: "the master is killed", do: replaced((*testbed.Redis).Kill),
			mend: returns(func(ctx context.Context) error { return old.Restart(ctx) }),
		},
		{
			name: "the master is paused until another one works", do: replaced((*testbed.Redis).Pause),
			mend: returns(func(context.Context) error { return old.Resume() }),
		},
	})
}

func startOnCluster(t *testing.T) *servers {
	t.Helper()
	const key = "shop:lock:{sku:redis}"
	c := testbedtest.StartCluster(t)
	var old *testbed.Redis
	return serving(t, []string{"redis", "redis-cohort", "lua"}, "--redis", "redis+cluster://%s", c.Addrs(), []engineFault{
		{
			name: "each used slot is moved, key by key",
			do: during(t, func(ctx context.Context) error {
				slots, keys, err := c.MoveSlots(ctx, 20*time.Millisecond)
				t.Logf("moved %d slots and %d keys", slots, keys)
				return err
			}),
		},
		{
			name: "a master is killed",
			do: during(t, func(ctx context.Context) (err error) {
				if old, err = c.KillMasterOf(ctx, key); err != nil {
					return err
				}
				return c.WaitForFailover(ctx, key, old)
			}),
			mend: during(t, func(ctx context.Context) error {
				if err := old.Restart(ctx); err != nil {
					return err
				}
				return c.WaitReady(ctx)
			}),
		},
		{
			name: "a master is paused until another one works",
			do: during(t, func(ctx context.Context) (err error) {
				if old, err = c.MasterOf(ctx, key); err != nil {
					return err
				}
				return errors.Join(old.Pause(), c.WaitForFailover(ctx, key, old))
			}),
			mend: during(t, func(ctx context.Context) error { return errors.Join(old.Resume(), c.WaitReady(ctx)) }),
		},
		{
			name: "a master is in a minority, since all others are paused",
			do: during(t, func(ctx context.Context) (err error) {
				master, err := c.MasterOf(ctx, key)
				if err != nil {
					return err
				}
				others := slices.DeleteFunc(c.Nodes(), func(n *testbed.Redis) bool { return n == master })
				for _, other := range others {
					err = errors.Join(err, other.Pause())
				}
				err = errors.Join(err, c.WaitForMinority(ctx, master))
				for _, other := range others {
					err = errors.Join(err, other.Resume())
				}
				return errors.Join(err, c.WaitReady(ctx))
			}),
		},
	})
}

func startOnRedlock(t *testing.T) *servers {
	t.Helper()
	var urls []string
	var nodes []*testbed.Redis
	for range 3 {
		s := testbedtest.StartRedis(t, testbed.RedisConfig{})
		urls, nodes = append(urls, s.URL()), append(nodes, s)
	}
	return serving(t, []string{"redlock", "redlock-cohort"}, "--redlock", "%s", urls, []engineFault{
		{name: "a server is killed, and is back without its data", do: func() { must(t, nodes[0].Kill()) }, mend: during(t, nodes[0].Restart)},
		{name: "a server is paused", do: func() { must(t, nodes[1].Pause()) }, mend: func() { must(t, nodes[1].Resume()) }},
	})
}

// member is one of several servers that elect a leader.
type member interface {
	Kill() error
	Restart(ctx context.Context) error
}

// leaderKilled is the fault of services that elect a leader. It lasts until there is another one.
func leaderKilled[M member](t *testing.T, leader func(ctx context.Context) (M, error)) []engineFault {
	t.Helper()
	var old M
	return []engineFault{{
		name: "the leader is killed",
		do: during(t, func(ctx context.Context) (err error) {
			if old, err = leader(ctx); err != nil {
				return err
			}
			if err := old.Kill(); err != nil {
				return err
			}
			_, err = leader(ctx)
			return err
		}),
		mend: during(t, func(ctx context.Context) error { return old.Restart(ctx) }),
	}}
}

func startOnZooKeeper(t *testing.T) *servers {
	t.Helper()
	e := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
	return serving(t, []string{"zookeeper", "zookeeper-cohort"}, "--zookeeper", "%s", e.Addrs(), leaderKilled(t, e.Leader))
}

func startOnEtcd(t *testing.T) *servers {
	t.Helper()
	c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
	return serving(t, []string{"etcd", "etcd-cohort"}, "--etcd", "%s", c.Addrs(), leaderKilled(t, c.Leader))
}
