package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"example.com/shop/bench/measure"
)

// redsyncLock is redsync on one node. A delay of 0 means its default, 50 to 250 ms at
// random.
func redsyncLock(delay time.Duration) func(context.Context, *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) {
		var options []redsync.Option
		if delay > 0 {
			options = append(options, redsync.WithRetryDelay(delay))
		}
		return &client{acquire: measure.Redsync(redsync.New(goredis.NewPool(rdb)), ttl, options...)}, nil
	})
}

// bsmLock is bsm/redislock.
func bsmLock(delay time.Duration) func(context.Context, *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) { return &client{acquire: measure.Bsm(rdb, ttl, delay)}, nil })
}
