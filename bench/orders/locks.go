package main

import (
	"context"
	"errors"
	"math"
	"time"

	"example.com/shop/internal/dlock"
	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const (
	ttl = 10 * time.Second

	// delay is between two tries: that of the sketch the targets come from. The defaults
	// of both libraries are longer, and slower.
	delay = 2 * time.Millisecond

	// strategy holds a lock around the read and the write of naive.
	strategy = "redis-unfenced"
)

// library makes a lock per acquisition.
type library struct {
	name string
	open func(rdb *redis.Client) func(ctx context.Context, key string) (release func(context.Context) error, err error)
}

var libraries = []library{
	{"redsync", func(rdb *redis.Client) func(context.Context, string) (func(context.Context) error, error) {
		sync := redsync.New(goredis.NewPool(rdb))
		return func(ctx context.Context, key string) (func(context.Context) error, error) {
			m := sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(delay))
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
	}},
	{"bsm-redislock", func(rdb *redis.Client) func(context.Context, string) (func(context.Context) error, error) {
		locks := bsm.New(rdb)
		return func(ctx context.Context, key string) (func(context.Context) error, error) {
			lock, err := locks.Obtain(ctx, key, ttl, &bsm.Options{RetryStrategy: bsm.LinearBackoff(delay)})
			if err != nil {
				return nil, err
			}
			return lock.Release, nil
		}
	}},
}

// locker makes a lock of a library a [dlock.Locker]. Neither library renews, so that a
// lease here is what it is there: good for its TTL.
type locker struct {
	acquire func(ctx context.Context, key string) (func(context.Context) error, error)
}

// Acquire implements [dlock.Locker].
func (l locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	sent := time.Now()
	release, err := l.acquire(ctx, "lock:"+key)
	if err != nil {
		return nil, err
	}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Sent: sent, TTL: ttl, Release: release,
	}), nil
}

// TryAcquire implements [dlock.Locker]. The service does not need it to sell.
func (l locker) TryAcquire(context.Context, string) (*dlock.Lease, error) {
	return nil, errors.ErrUnsupported
}
