package redisindex

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/timeout"
)

// maxBatch bounds the timers of one script, and with it how long it keeps the
// server from others. Lua takes some 8,000 arguments; a timer is two of them.
const maxBatch = 512

// Config is the configuration of an [Index].
type Config struct {
	// Shards is the number of shards of a kind and partition, the same for all
	// processes. 0 means 4.
	Shards int
}

// Index is a [timeout.Index] on Redis.
type Index struct {
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // nil unless rdb is one
	cfg     Config

	mu     sync.Mutex
	shards map[[2]string][]timeout.Shard // by kind and partition
	wakes  map[string]*waker             // by name of the shard
	start  func(name string)             // makes the messages of a shard arrive; nil unless Run runs in a cluster
}

// New returns an Index whose data is in rdb. It fails if rdb repeats commands by
// itself or ignores the deadlines of contexts.
func New(rdb redis.UniversalClient, cfg Config) (*Index, error) {
	cfg.Shards = cmp.Or(cfg.Shards, 4)
	err := redisx.Check(rdb)
	if cfg.Shards < 0 || cfg.Shards > maxShards {
		err = errors.Join(err, fmt.Errorf("%d shards: want 1 to %d", cfg.Shards, maxShards))
	}
	if err != nil {
		return nil, fmt.Errorf("redisindex: %w", err)
	}
	x := &Index{
		rdb: rdb, cfg: cfg, shards: map[[2]string][]timeout.Shard{}, wakes: map[string]*waker{},
	}
	x.cluster, _ = rdb.(*redis.ClusterClient)
	return x, nil
}

// GrantPass implements [timeout.Index].
func (x *Index) GrantPass(ctx context.Context, kind, partition string, every time.Duration) (bool, error) {
	s := x.Shards(kind, partition)[0]
	err := x.rdb.SetArgs(ctx, x.keysOf(s).pass, "", redis.SetArgs{Mode: "NX", TTL: every}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, x.named("grant a pass", s, err)
}

// Pending implements [timeout.Index].
func (x *Index) Pending(ctx context.Context, kind, partition string) (int, error) {
	var commands []*redis.Cmd
	for _, s := range x.Shards(kind, partition) {
		commands = append(commands, redis.NewCmd(ctx, "zcard", x.keysOf(s).pending))
	}
	n, err := x.send(ctx, commands)
	return n, x.named("count", timeout.Shard{Kind: kind, Partition: partition}, err)
}

// named says in err what was attempted.
func (x *Index) named(what string, s timeout.Shard, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisindex: %s %s:%s: %w", what, s.Kind, s.Partition, err)
}
