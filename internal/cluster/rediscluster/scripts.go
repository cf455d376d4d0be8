package rediscluster

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
)

//go:embed common.lua
var commonLua string

//go:embed join.lua
var joinLua string

//go:embed renew.lua
var renewLua string

//go:embed leave.lua
var leaveLua string

//go:embed list.lua
var listLua string

//go:embed post.lua
var postLua string

//go:embed clear.lua
var clearLua string

// The scripts are constants that cannot be declared so.
var (
	joinScript  = newScript(commonLua, joinLua)
	renewScript = newScript(commonLua, renewLua)
	leaveScript = newScript(commonLua, leaveLua)
	listScript  = newScript(commonLua, listLua)
	postScript  = newScript(postLua)
	clearScript = newScript(clearLua)
)

func newScript(parts ...string) *redis.Script { return redis.NewScript(strings.Join(parts, "\n")) }

// insist runs a script that deletes what others would see until its TTL has passed. If Redis refuses or does
// not answer, it is repeated for half a Timeout.
func (c *Cluster) insist(ctx context.Context, s *redis.Script, keys []string, args ...any) error {
	for began := time.Now(); ; {
		err := c.run(ctx, s, keys, args...).Err()
		if err == nil || time.Since(began) > c.cfg.Timeout/2 || !backoff.Sleep(ctx, c.cfg.Timeout/20) {
			return err
		}
	}
}

// run runs a script, in the time that a round trip may take. Each can be repeated.
func (c *Cluster) run(ctx context.Context, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	return s.Run(ctx, c.rdb, keys, args...)
}
