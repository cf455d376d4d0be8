package rediscluster

import (
	"context"
	"iter"

	"example.com/shop/internal/cluster"
)

// watch returns a sequence of what read returns.
func watch[T any](ctx context.Context, c *Cluster, equal func(a, b T) bool, read func(ctx context.Context) (T, error)) iter.Seq2[T, error] {
	return cluster.Feed[T]{
		Read: func(ctx context.Context, _ func()) (T, func(), error) {
			value, err := read(ctx)
			return value, nil, err
		},
		Equal: equal, Gap: c.cfg.Poll / 4, FallbackPoll: c.cfg.Poll, Timeout: c.cfg.Timeout,
	}.Values(ctx)
}
