package redisindex

import (
	"cmp"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/timeout"
)

// Schedule implements [timeout.Index]. It shares round trips with concurrent calls.
// After an error some of the entries may have arrived.
func (x *Index) Schedule(ctx context.Context, kind, partition string, missing bool, entries []timeout.Entry) (int, error) {
	if len(entries) == 0 {
		return 0, nil
	}
	shards := x.Shards(kind, partition)
	if len(entries) == 1 { // most calls: one order, one timer
		h := entries[0]
		s := shards[shardOf(h.ID, len(shards))]
		added, err := x.lane(s, missing).start(ctx, []any{h.At.UnixMilli(), h.ID}).wait()
		return added, x.named("schedule", s, err)
	}
	pairs := make([][]any, len(shards))
	for _, h := range entries {
		n := shardOf(h.ID, len(shards))
		pairs[n] = append(pairs[n], h.At.UnixMilli(), h.ID)
	}
	var calls []*call
	for n, all := range pairs {
		for some := range slices.Chunk(all, 2*maxBatch) {
			calls = append(calls, x.lane(shards[n], missing).start(ctx, some))
		}
	}
	sum, first := 0, error(nil)
	for _, c := range calls {
		added, err := c.wait()
		sum, first = sum+added, cmp.Or(first, x.named("schedule", c.shard, err))
	}
	return sum, first
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
