package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	masters = 3
	slots   = 16384
)

// Cluster is a Redis Cluster of three masters with a replica each. It fails over about three seconds after a master has
// died. The roles change; MasterOf says who has them now.
type Cluster struct {
	servers[*Redis]

	buses []int // the port on which each node talks to the others
}

// StartCluster runs six servers on free loopback ports, and joins them. It returns when all six find the cluster
// complete, and every master has a replica that is in step. It needs Redis 7.
func StartCluster(ctx context.Context) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	for range 2 * masters {
		bus := 0
		node, err := startNode(ctx, "cluster", func(int) (_ []string, err error) {
			// By default the bus is 10000 above the port, where outgoing connections begin.
			bus, err = freePort(ctx)
			return append(replicating(),
				"cluster-enabled yes", fmt.Sprintf("cluster-port %d", bus), "cluster-node-timeout 1000",
				// A replica that received nothing from its master for long, as on a machine that stalls, is still
				// better than none.
				"cluster-replica-validity-factor 0",
			), err
		})
		if err != nil {
			return err
		}
		c.nodes, c.buses = append(c.nodes, node), append(c.buses, bus)
	}
	if err := c.join(ctx); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return c.WaitReady(ctx)
}

// join gives each master a third of the slots and introduces the nodes to each other. Then it makes the other half
// replicas, because a node can follow only a node that was introduced to it.
func (c *Cluster) join(ctx context.Context) error {
	ids := make([]string, len(c.nodes))
	for i, node := range c.nodes {
		err := node.ask(ctx, func(ctx context.Context, r *redis.Client) (err error) {
			if ids[i], err = r.ClusterMyID(ctx).Result(); err != nil {
				return err
			}
			if i < masters {
				first, next := i*slots/masters, (i+1)*slots/masters
				if err := r.ClusterAddSlotsRange(ctx, first, next-1).Err(); err != nil {
					return err
				}
			}
			// Nodes that all begin at the same epoch would first have to settle who is right.
			return r.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err()
		})
		if err != nil {
			return err
		}
	}
	for _, node := range c.nodes[1:] {
		if err := until(ctx, "meet", func(ctx context.Context) error { return node.ask(ctx, c.meetFirst(ids[0])) }); err != nil {
			return err
		}
	}
	for i, node := range c.nodes[masters:] {
		err := until(ctx, "replicate", func(ctx context.Context) error {
			return node.ask(ctx, func(ctx context.Context, r *redis.Client) error {
				return r.ClusterReplicate(ctx, ids[i]).Err()
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// meetFirst has a node meet the first one, of which the id is given, and says so as long as they have not. A node
// forgets a node from which it received nothing for the node timeout, as on a machine that stalls. It then has to be
// introduced again.
func (c *Cluster) meetFirst(id string) func(ctx context.Context, r *redis.Client) error {
	return func(ctx context.Context, r *redis.Client) error {
		known, err := r.ClusterNodes(ctx).Result()
		if err != nil || strings.Contains(known, id) {
			return err
		}
		host, port, _ := strings.Cut(c.nodes[0].addr, ":")
		if err := r.Do(ctx, "CLUSTER", "MEET", host, port, c.buses[0]).Err(); err != nil {
			return err
		}
		return errors.New("two nodes have not met")
	}
}

// MasterOf is the node that has the slot of key, as most of the nodes that answer
// see it.
func (c *Cluster) MasterOf(ctx context.Context, key string) (*Redis, error) {
	votes, answers := map[string]int{}, 0
	for _, node := range c.nodes {
		// A node that does not answer has no vote.
		_ = node.ask(ctx, func(ctx context.Context, r *redis.Client) error {
			addr, err := masterOf(ctx, r, key)
			if err == nil {
				votes[addr]++
				answers++
			}
			return err
		})
	}
	for _, node := range c.nodes {
		if 2*votes[node.addr] > answers {
			return node, nil
		}
	}
	return nil, fmt.Errorf("cluster: the nodes do not agree on the master of %q: %v", key, votes)
}

// masterOf asks one node.
func masterOf(ctx context.Context, r *redis.Client, key string) (string, error) {
	slot, err := r.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return "", err
	}
	ranges, err := r.ClusterSlots(ctx).Result() //nolint:staticcheck // After a failover go-redis cannot read what Valkey answers to CLUSTER SHARDS.
	if err != nil {
		return "", err
	}
	for _, in := range ranges {
		if int64(in.Start) <= slot && slot <= int64(in.End) && len(in.Nodes) > 0 {
			return in.Nodes[0].Addr, nil // the master is the first
		}
	}
	return "", fmt.Errorf("slot %d has no master", slot)
}

// KillMasterOf crashes the master of key and returns it.
func (c *Cluster) KillMasterOf(ctx context.Context, key string) (*Redis, error) {
	master, err := c.MasterOf(ctx, key)
	if err != nil {
		return nil, err
	}
	return master, master.Kill()
}
