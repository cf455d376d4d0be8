package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/timeout"
)

// Schedule implements [timeout.Index]. Each shard gets a script for every maxBatch entries, all shards at once.
// After an error some of the entries may have arrived.
func (x *Index) Schedule(ctx context.Context, kind, partition string, missing bool, entries []timeout.Entry) (added int, err error) {
	shards := x.Shards(kind, partition)
	if len(entries) == 1 { // most calls: one order, one timer
		s := shards[shardOf(entries[0].ID, len(shards))]
		return x.put(ctx, s, missing, entries)
	}
	parts := make([][]timeout.Entry, len(shards))
	for _, e := range entries {
		n := shardOf(e.ID, len(shards))
		parts[n] = append(parts[n], e)
	}
	var all sync.WaitGroup
	counts, errs := make([]int, len(shards)), make([]error, len(shards))
	for n, part := range parts {
		all.Go(func() {
			for some := range slices.Chunk(part, maxBatch) {
				fresh, err := x.put(ctx, shards[n], missing, some)
				if counts[n] += fresh; err != nil {
					errs[n] = err
					return
				}
			}
		})
	}
	all.Wait()
	for n := range shards {
		added, err = added+counts[n], cmp.Or(err, errs[n])
	}
	return added, err
}

// put puts entries into a shard, and returns how many were new.
func (x *Index) put(ctx context.Context, s timeout.Shard, missing bool, entries []timeout.Entry) (added int, err error) {
	k, only := x.keysOf(s), ""
	if missing {
		only = "nx"
	}
	args := append(x.announce(k), only)
	for _, e := range entries {
		args = append(args, e.At.UnixMilli(), e.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	reply, err := scheduleScript.Run(ctx, x.rdb, []string{k.pending}, args)
	list, _ := reply.([]any)
	if err == nil && len(list) != 2 {
		err = fmt.Errorf("reply %v", reply)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // the client reads until the deadline of ctx
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if err != nil {
		return 0, x.named("schedule", s, err)
	}
	n, _ := list[1].(int64)
	x.deliver(k.name, list[0])
	return int(n), nil
}

// Remove implements [timeout.Index].
func (x *Index) Remove(ctx context.Context, kind, partition string, ids []string) error {
	shards := x.Shards(kind, partition)
	members := make([][]any, len(shards))
	for _, id := range ids {
		n := shardOf(id, len(shards))
		members[n] = append(members[n], id)
	}
	var commands []*redis.Cmd
	for n, all := range members {
		for some := range slices.Chunk(all, maxBatch) {
			args := append([]any{"zrem", x.keysOf(shards[n]).pending}, some...)
			commands = append(commands, redis.NewCmd(ctx, args...))
		}
	}
	_, err := x.send(ctx, commands)
	return x.named("remove", timeout.Shard{Kind: kind, Partition: partition}, err)
}
