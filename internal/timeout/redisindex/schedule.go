package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"example.com/shop/internal/timeout"
)

// Schedule implements [timeout.Index]. Each shard gets a script for every maxBatch entries, all shards at once.
// After an error some of the entries may have arrived.
func (x *Index) Schedule(ctx context.Context, kind, partition string, entries []timeout.Entry) (err error) {
	shards := x.Shards(kind, partition)
	if len(entries) == 1 {
		return x.put(ctx, shards[shardOf(entries[0].ID, len(shards))], entries)
	}
	parts := make([][]timeout.Entry, len(shards))
	for _, e := range entries {
		n := shardOf(e.ID, len(shards))
		parts[n] = append(parts[n], e)
	}
	var all sync.WaitGroup
	errs := make([]error, len(shards))
	for n, part := range parts {
		all.Go(func() {
			for some := range slices.Chunk(part, maxBatch) {
				if errs[n] = x.put(ctx, shards[n], some); errs[n] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// put puts entries into a shard.
func (x *Index) put(ctx context.Context, s timeout.Shard, entries []timeout.Entry) error {
	k := x.keysOf(s)
	args := x.announce(k)
	for _, e := range entries {
		args = append(args, e.At.UnixMilli(), e.ID)
	}
	earliest, err := scheduleScript.Run(ctx, x.rdb, []string{k.pending}, args)
	if errors.Is(err, os.ErrDeadlineExceeded) { // the client reads until the deadline of ctx
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if err != nil {
		return x.named("schedule", s, err)
	}
	x.deliver(k.name, earliest)
	return nil
}
