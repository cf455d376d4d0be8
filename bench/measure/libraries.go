package measure

import (
	"context"
	"errors"
	"math"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
)

// Acquire waits for the lock of a key. Its result releases the lock.
type Acquire = func(ctx context.Context, key string) (release func(context.Context) error, err error)

// Redsync is redsync as its README has it: a Mutex per acquisition. It tries until it succeeds, as the others do, not
// 32 times.
func Redsync(sync *redsync.Redsync, ttl time.Duration, options ...redsync.Option) Acquire {
	options = append(options, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
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
	}
}

// Bsm is bsm/redislock with its linear backoff.
func Bsm(rdb *redis.Client, ttl, delay time.Duration) Acquire {
	locks := bsm.New(rdb)
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		lock, err := locks.Obtain(ctx, key, ttl, &bsm.Options{RetryStrategy: bsm.LinearBackoff(delay)})
		if err != nil {
			return nil, err
		}
		return lock.Release, nil
	}
}
