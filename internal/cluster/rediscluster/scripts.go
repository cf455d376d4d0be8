package rediscluster

import (
	"context"
	_ "embed" // the scripts are files
	"strings"

	"github.com/redis/go-redis/v9"
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

// run runs a script, in the time that a round trip may take. Each can be repeated.
func (c *Cluster) run(ctx context.Context, s *redis.Script, keys []string, args ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	return s.Run(ctx, c.rdb, keys, args...)
}
