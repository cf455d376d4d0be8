package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/cluster"
)

// Announce implements [cluster.Registry]. It posts the announcement again every TTL/3. A post that
// is under way when ctx ends is waited for, because it would come after what takes it down.
func (c *Cluster) Announce(ctx context.Context, election string, l cluster.Leader) error {
	keys := []string{c.announcementKey(election)}
	token, text := strconv.FormatUint(l.Fence.Token, 10), cluster.EncodeLeader(l)
	for {
		wait := c.cfg.TTL / 3
		err := c.run(context.WithoutCancel(ctx), postScript, keys, c.cfg.TTL.Milliseconds(), token, text).Err()
		if err != nil && ctx.Err() == nil {
			c.cfg.OnError(fmt.Errorf("rediscluster: announcement of %q: %w", election, err))
			wait = c.cfg.TTL / 20
		}
		if !backoff.Sleep(ctx, wait) {
			return c.insist(context.WithoutCancel(ctx), clearScript, keys, token+";"+text)
		}
	}
}

// Leaders implements [cluster.Registry]. A look is one GET.
func (c *Cluster) Leaders(ctx context.Context, election string) iter.Seq2[cluster.Leader, error] {
	key := c.announcementKey(election)
	return watch(ctx, c, cluster.Leader.Equal, func(ctx context.Context) (cluster.Leader, error) {
		held, err := c.rdb.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) {
			return cluster.Leader{}, nil
		}
		if err != nil {
			return cluster.Leader{}, err
		}
		_, text, _ := strings.Cut(held, ";")
		l, err := cluster.DecodeLeader(text)
		if err != nil {
			c.strays.Report(c.cfg.OnError, "rediscluster:", key+": "+held, err)
			return cluster.Leader{}, nil
		}
		return l, nil
	})
}
