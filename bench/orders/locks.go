package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	bench "example.com/shop/bench/measure"
	"example.com/shop/internal/dlock"
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
	open func(rdb *redis.Client) bench.Acquire
}

var libraries = []library{
	{"redsync", func(rdb *redis.Client) bench.Acquire {
		return bench.Redsync(redsync.New(goredis.NewPool(rdb)), ttl, redsync.WithRetryDelay(delay))
	}},
	{"bsm-redislock", func(rdb *redis.Client) bench.Acquire { return bench.Bsm(rdb, ttl, delay) }},
}

// locker makes a lock of a library a [dlock.Locker]. Neither library renews, so that a
// lease here is what it is there: good for its TTL.
type locker struct{ acquire bench.Acquire }

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
