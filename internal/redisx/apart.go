package redisx

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// Apart returns a client as rdb with a pool of its own, or nil if it does not
// know the kind. Connections that wait on the server would starve the others. A
// reply may take that long. It does not share what handles notifications of the
// server: a second client cannot register with the first one's.
func Apart(rdb redis.UniversalClient, reply time.Duration) redis.UniversalClient {
	const pool = 256 // connections are made when they are needed
	switch c := rdb.(type) {
	case *redis.Client:
		opts := *c.Options()
		opts.PoolSize, opts.MinIdleConns, opts.MaxActiveConns = pool, 0, 0
		opts.MaintNotificationsConfig, opts.PushNotificationProcessor = disabled(), nil
		if opts.ReadTimeout > 0 {
			opts.ReadTimeout = max(opts.ReadTimeout, reply)
		}
		return redis.NewClient(&opts)
	case *redis.ClusterClient:
		opts := *c.Options()
		opts.PoolSize, opts.MinIdleConns, opts.MaxActiveConns = pool, 0, 0
		opts.MaintNotificationsConfig, opts.PushNotificationProcessor = disabled(), nil
		if opts.ReadTimeout > 0 {
			opts.ReadTimeout = max(opts.ReadTimeout, reply)
		}
		return redis.NewClusterClient(&opts)
	}
	return nil
}
