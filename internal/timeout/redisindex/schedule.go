package redisindex

import (
	"cmp"
	"context"

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
	for n, p := range pairs {
		for len(p) > 0 {
			end := min(len(p), 2*maxBatch)
			calls = append(calls, x.lane(shards[n], missing).start(ctx, p[:end:end]))
			p = p[end:]
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
	for n, m := range members {
		commands = append(commands, removals(ctx, x.keysOf(shards[n]).pending, m)...)
	}
	_, err := x.count(ctx, commands)
	return x.named("remove", timeout.Shard{Kind: kind, Partition: partition}, err)
}
