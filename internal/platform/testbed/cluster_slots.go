package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// MoveSlots moves each slot that has keys from its master to the next master, as redis-cli does it: key by key, while
// clients use the slot. It waits for pause before and after each step of a slot, so that clients see the keys of a slot
// on two masters. It returns how many slots and keys were moved. If a replica takes over meanwhile, as on a machine that stalls,
// it begins again.
func (c *Cluster) MoveSlots(ctx context.Context, pause time.Duration) (moved, keys int, err error) {
	for range startAttempts {
		if moved, keys, err = c.moveSlots(ctx, pause); err == nil {
			break
		}
		err = errors.Join(err, c.WaitReady(ctx))
	}
	return moved, keys, err
}

func (c *Cluster) moveSlots(ctx context.Context, pause time.Duration) (moved, keys int, err error) {
	var owners []*Redis
	var used [][]int
	for _, node := range c.nodes {
		master, slots, err := node.usedSlots(ctx)
		if err != nil {
			return 0, 0, err
		}
		if master {
			owners, used = append(owners, node), append(used, slots)
		}
	}
	for i, source := range owners {
		for _, slot := range used[i] {
			n, err := moveSlot(ctx, slot, source, owners[(i+1)%len(owners)], pause)
			if err != nil {
				return moved, keys, fmt.Errorf("move slot %d: %w", slot, err)
			}
			moved, keys = moved+1, keys+n
		}
	}
	return moved, keys, nil
}

// usedSlots are the slots of a master that have keys.
func (r *Redis) usedSlots(ctx context.Context) (master bool, slots []int, err error) {
	err = r.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		if master = expectReplication(ctx, c, "role:master") == nil; !master {
			return nil
		}
		keys, err := c.Keys(ctx, "*").Result()
		if err != nil {
			return err
		}
		for _, key := range keys {
			slot, err := c.ClusterKeySlot(ctx, key).Result()
			if err != nil {
				return err
			}
			slots = append(slots, int(slot))
		}
		return nil
	})
	slices.Sort(slots)
	return master, slices.Compact(slots), err
}

func moveSlot(ctx context.Context, slot int, source, target *Redis, pause time.Duration) (keys int, err error) {
	sourceID, err := source.nodeID(ctx)
	if err != nil {
		return 0, err
	}
	targetID, err := target.nodeID(ctx)
	if err != nil {
		return 0, err
	}
	if err := target.setSlot(ctx, slot, "IMPORTING", sourceID); err != nil {
		return 0, err
	}
	if err := source.setSlot(ctx, slot, "MIGRATING", targetID); err != nil {
		return 0, err
	}
	for {
		<-time.After(pause)
		found, err := source.migrate(ctx, slot, target.addr)
		if err != nil {
			return keys, err
		}
		if !found {
			break
		}
		keys++
	}
	for _, node := range []*Redis{target, source} { // the target first: the slot always has an owner
		if err := node.setSlot(ctx, slot, "NODE", targetID); err != nil {
			return keys, err
		}
		<-time.After(pause)
	}
	return keys, nil
}

func (r *Redis) nodeID(ctx context.Context) (id string, err error) {
	err = r.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		id, err = c.ClusterMyID(ctx).Result()
		return err
	})
	return id, err
}

func (r *Redis) setSlot(ctx context.Context, slot int, state, id string) error {
	return r.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.Do(ctx, "CLUSTER", "SETSLOT", slot, state, id).Err()
	})
}

// migrate moves a key of the slot, if there is one.
func (r *Redis) migrate(ctx context.Context, slot int, to string) (found bool, err error) {
	err = r.ask(ctx, func(ctx context.Context, c *redis.Client) error {
		keys, err := c.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		found = true
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			return err
		}
		// A key that has expired meanwhile is no error: NOKEY.
		return c.Migrate(ctx, host, port, keys[0], 0, attemptTimeout).Err()
	})
	return found, err
}
