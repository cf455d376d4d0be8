package testbed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// WaitForFailover waits until another node has taken over the slot of key from old
// and every node that answers finds the cluster complete. It fails when ctx ends,
// after a minute at the latest.
func (c *Cluster) WaitForFailover(ctx context.Context, key string, old *Redis) error {
	return until(ctx, "failover", func(ctx context.Context) error {
		master, err := c.MasterOf(ctx, key)
		if err != nil {
			return err
		}
		if master == old {
			return errors.New("the master is the old one")
		}
		for _, node := range c.nodes {
			if node == old {
				continue
			}
			if err := node.ask(ctx, complete); err != nil {
				return err
			}
		}
		return nil
	})
}

// WaitForMinority waits until node refuses all keys, because it does not see most of the masters. It fails when ctx ends, after a
// minute at the latest.
func (c *Cluster) WaitForMinority(ctx context.Context, node *Redis) error {
	return until(ctx, "minority", func(ctx context.Context) error {
		return node.ask(ctx, func(ctx context.Context, r *redis.Client) error {
			info, err := r.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			return expectLines(info, "cluster_state:fail")
		})
	})
}

// WaitReady waits until the cluster is as after StartCluster. All six servers have
// to run. It fails when ctx ends, after a minute at the latest.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return until(ctx, "cluster is not ready", func(ctx context.Context) error {
		for _, node := range c.nodes {
			if err := node.ask(ctx, c.settled); err != nil {
				return err
			}
		}
		return nil
	})
}

// complete asks whether a node would serve.
func complete(ctx context.Context, r *redis.Client) error {
	info, err := r.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	return expectLines(info, "cluster_state:ok", fmt.Sprintf("cluster_slots_ok:%d", slots))
}

// settled asks whether a node sees six nodes, none of them failing, and has a
// replica or is one.
func (c *Cluster) settled(ctx context.Context, r *redis.Client) error {
	if err := complete(ctx, r); err != nil {
		return err
	}
	info, err := r.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	known, size := "cluster_known_nodes:"+strconv.Itoa(len(c.nodes)), "cluster_size:"+strconv.Itoa(masters)
	if err := expectLines(info, known, size); err != nil {
		return err
	}
	nodes, err := r.ClusterNodes(ctx).Result()
	if err != nil {
		return err
	}
	if strings.Contains(nodes, "fail") || strings.Contains(nodes, "handshake") || strings.Contains(nodes, "noaddr") {
		return fmt.Errorf("a node is not in order:\n%s", nodes)
	}
	if expectReplication(ctx, r, "role:master", "connected_slaves:1") == nil {
		return nil
	}
	return expectReplication(ctx, r, "role:slave", "master_link_status:up", "master_sync_in_progress:0")
}
