package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// WaitForFailover waits until the other data node has taken over from old: the
// sentinels that answer name it, and it takes writes. It fails when ctx ends, after
// a minute at the latest.
func (s *Sentinel) WaitForFailover(ctx context.Context, old *Redis) error {
	return until(ctx, "failover", func(ctx context.Context) error {
		master, err := s.Master(ctx)
		if err != nil {
			return err
		}
		if master == old {
			return errors.New("the master is the old one")
		}
		return master.ask(ctx, func(ctx context.Context, c *redis.Client) error {
			return expectReplication(ctx, c, "role:master")
		})
	})
}

// WaitReady waits until the next failover is possible, as after StartSentinel. All
// five servers have to run. It fails when ctx ends, after a minute at the latest.
func (s *Sentinel) WaitReady(ctx context.Context) error {
	return until(ctx, "sentinel is not ready", func(ctx context.Context) error {
		master, err := s.Master(ctx)
		if err == nil {
			err = s.replicates(ctx, master)
		}
		if err != nil {
			return err
		}
		for _, w := range s.watchers {
			if err := s.watches(ctx, w, master); err != nil {
				return err
			}
		}
		return nil
	})
}

// replicates asks both ends of the replication.
func (s *Sentinel) replicates(ctx context.Context, master *Redis) error {
	err := master.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		return expectReplication(ctx, c, "role:master", "connected_slaves:1")
	})
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(master.addr, ":")
	return s.other(master).ask(ctx, func(ctx context.Context, c *redis.Client) error {
		return expectReplication(ctx, c,
			"role:slave", "master_port:"+port, "master_link_status:up", "master_sync_in_progress:0")
	})
}

// watches asks one sentinel for what it knows: master, replica and colleagues.
func (s *Sentinel) watches(ctx context.Context, watcher, master *Redis) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	c := redis.NewSentinelClient(askOptions(watcher.addr))
	defer c.Close()
	known, err := c.Master(ctx, masterName).Result()
	if err != nil {
		return err
	}
	replicas, err := c.Replicas(ctx, masterName).Result()
	if err != nil {
		return err
	}
	switch {
	case net.JoinHostPort(known["ip"], known["port"]) != master.addr,
		known["flags"] != "master",
		known["num-other-sentinels"] != strconv.Itoa(sentinels-1):
		return fmt.Errorf("sentinel at %s knows the master as %v", watcher.addr, known)
	case len(replicas) != 1, replicas[0]["flags"] != "slave", replicas[0]["master-link-status"] != "ok":
		return fmt.Errorf("sentinel at %s knows the replicas as %v", watcher.addr, replicas)
	}
	return c.CkQuorum(ctx, masterName).Err()
}
