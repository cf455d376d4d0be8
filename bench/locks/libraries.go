package main

import (
	"context"
	"errors"
	"math"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncLock is redsync on one node. A delay of 0 means its default, 50 to 250 ms at
// random.
func redsyncLock(delay time.Duration) func(context.Context, *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) {
		var options []redsync.Option
		if delay > 0 {
			options = append(options, redsync.WithRetryDelay(delay))
		}
		return redsyncClient(redsync.New(goredis.NewPool(rdb)), options...), nil
	})
}

// redsyncClient is redsync as its README has it: a Mutex per acquisition. It tries
// until it succeeds, as the others do, not 32 times.
func redsyncClient(sync *redsync.Redsync, options ...redsync.Option) *client {
	options = append(options, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))
	return &client{acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
		m := sync.NewMutex(key, options...)
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			if held, err := m.UnlockContext(ctx); err != nil || held {
				return err
			}
			return errors.New("redsync: the lock was not held")
		}, nil
	}}
}

// bsmLock is bsm/redislock with its linear backoff.
func bsmLock(delay time.Duration) func(context.Context, *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) {
		locks := bsm.New(rdb)
		return &client{acquire: func(ctx context.Context, key string) (func(context.Context) error, error) {
			lock, err := locks.Obtain(ctx, key, ttl, &bsm.Options{RetryStrategy: bsm.LinearBackoff(delay)})
			if err != nil {
				return nil, err
			}
			return lock.Release, nil
		}}, nil
	})
}
