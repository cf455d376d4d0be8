package redisindex

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// script is a Lua script and the name by which a server knows it.
type script struct{ text, sha string }

// newScript joins parts to one script.
func newScript(parts ...string) script {
	text := strings.Join(parts, "\n")
	return script{text, redis.NewScript(text).Hash()}
}

// once is a command that no client sends again by itself. A redirect in a Cluster is
// followed, for a command that is redirected was not executed.
type once struct{ *redis.Cmd }

// NoRetry implements [redis.Cmder].
func (once) NoRetry() bool { return true }

// run runs a script, and sends its text to a server that does not know it.
func (x *Index) run(ctx context.Context, s script, keys []string, args []any) (any, error) {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", s.sha, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	all = append(all, args...)
	reply, err := x.do(ctx, all)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", s.text
		reply, err = x.do(ctx, all)
	}
	return reply, err
}

func (x *Index) do(ctx context.Context, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	x.rdb.Process(ctx, once{cmd}) //nolint:errcheck // The command has the error.
	return cmd.Result()
}

// pipeline sends commands whose key is the first argument.
func (x *Index) pipeline(ctx context.Context, commands []*redis.Cmd) error {
	if len(commands) == 0 {
		return nil
	}
	pipe := x.rdb.Pipeline()
	for _, c := range commands {
		c.SetFirstKeyPos(1)
		pipe.Process(ctx, once{c}) //nolint:errcheck // It only queues.
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
