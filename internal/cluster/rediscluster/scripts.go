package rediscluster

import (
	"context"
	"embed"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/backoff"
	"example.com/shop/internal/redisx"
)

//go:embed lua
var files embed.FS

var lua = redisx.Folder{Files: files}

// The scripts are constants that cannot be declared so.
var (
	joinScript  = redis.NewScript(lua.Text("common", "join"))
	renewScript = redis.NewScript(lua.Text("common", "renew"))
	leaveScript = redis.NewScript(lua.Text("common", "leave"))
	listScript  = redis.NewScript(lua.Text("common", "list"))
	postScript  = redis.NewScript(lua.Text("post"))
	clearScript = redis.NewScript(lua.Text("clear"))
)

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
