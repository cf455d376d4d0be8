package redisindex

import (
	"context"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// send sends commands whose key is the first argument, and adds up their replies.
func (x *Index) send(ctx context.Context, commands []*redis.Cmd) (sum int, err error) {
	if len(commands) == 0 {
		return 0, nil
	}
	pipe := x.rdb.Pipeline()
	for _, c := range commands {
		c.SetFirstKeyPos(1)
		pipe.Process(ctx, redisx.Once{Cmd: c}) //nolint:errcheck // It only queues.
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for _, c := range commands {
		if err := c.Err(); err != nil {
			return sum, err
		}
		n, _ := c.Int()
		sum += n
	}
	return sum, nil
}
