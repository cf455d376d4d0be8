package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/sqldb"
)

// memberTimeout is how long a sentinel, or a node of a cluster, has to respond.
const memberTimeout = time.Second

// oneOfSeveral adds a server of a list, without which the others can serve.
func oneOfSeveral(store, role string, err error) Check {
	r := &report{store: store}
	r.need("host", role, err, Warn, "check that the server runs, or take it out of the list")
	return r.checks[0]
}

// databaseHosts asks each host of a URL that names several.
func databaseHosts(ctx context.Context, url string) (all []Check) {
	for _, h := range sqldb.Hosts(ctx, url) {
		all = append(all, oneOfSeveral("database "+h.Address, h.Role, h.Err))
	}
	return all
}

// warnOfHosts logs which hosts of a URL that names several accept no connection, and why: another one has.
func warnOfHosts(ctx context.Context, url string, log *slog.Logger) {
	for _, h := range sqldb.Hosts(ctx, url) {
		if h.Err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "a host of the database accepts no connection", slog.String("host", h.Address), slog.String("error", h.Err.Error()))
		}
	}
}

// redisHosts asks each sentinel, or node of a cluster, that a URL names.
func redisHosts(ctx context.Context, url string, opened *closers) []Check {
	members := redisclient.Members(url)
	all := make([]Check, len(members))
	var asked sync.WaitGroup
	for i, rdb := range members {
		opened.pushClient("redis client", rdb.Close)
		asked.Go(func() {
			role, err := roleOf(ctx, rdb)
			all[i] = oneOfSeveral("redis "+addressOf(rdb), role, err)
		})
	}
	asked.Wait()
	return all
}

// roleOf returns what a sentinel reports of its first master, or the role of a node.
func roleOf(ctx context.Context, rdb *redis.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	text, err := rdb.Info(ctx).Result()
	is := fields(text, ":")
	return is["redis_mode"] + " " + is["role"] + is["master0"], err // a sentinel has no role, and a node no master0
}
