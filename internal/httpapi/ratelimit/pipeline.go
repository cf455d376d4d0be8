package ratelimit

import (
	"context"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisx"
)

// pipelined is a client whose concurrent callers share round trips.
type pipelined struct {
	redis.UniversalClient

	caller *redisx.Caller
}

// EvalSha is that of [redis.UniversalClient]. It returns when ctx ends, and the script may run later.
func (p pipelined) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx)
	reply, _, err := p.caller.Run(ctx, redisx.LoadedScript(sha), keys, args...)
	cmd.SetVal(reply)
	cmd.SetErr(err)
	return cmd
}
