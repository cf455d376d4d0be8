package redisindex

import (
	"context"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/redisx"
)

// pipeline sends commands whose key is the first argument.
func (x *Index) pipeline(ctx context.Context, commands []*redis.Cmd) error {
	if len(commands) == 0 {
		return nil
	}
	pipe := x.rdb.Pipeline()
	for _, c := range commands {
		c.SetFirstKeyPos(1)
		pipe.Process(ctx, redisx.Once{Cmd: c}) //nolint:errcheck // It only queues.
	}
	pipe.Exec(ctx) //nolint:errcheck // Every command has its own error.
	for _, c := range commands {
		if err := c.Err(); err != nil {
			return err
		}
	}
	return nil
}

// removals are the commands that remove members from a sorted set.
func removals(ctx context.Context, key string, members []any) (commands []*redis.Cmd) {
	for len(members) > 0 {
		n := min(len(members), maxBatch)
		args := append(make([]any, 0, 2+n), "zrem", key)
		commands = append(commands, redis.NewCmd(ctx, append(args, members[:n]...)...))
		members = members[n:]
	}
	return commands
}

// count sends commands and adds up their replies.
func (x *Index) count(ctx context.Context, commands []*redis.Cmd) (sum int, err error) {
	err = x.pipeline(ctx, commands)
	for _, c := range commands {
		n, _ := c.Int()
		sum += n
	}
	return sum, err
}
