package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/dlock/share"
)

// ttl is that of every lock and permit. No run lasts as long, so that no
// renewal is among what is measured.
const ttl = 30 * time.Second

// subject is what is measured: one library, configured in one way.
type subject struct {
	name   string
	ours   bool
	sends  string // a command that its clients send and its scripts do not call, alongside those of every subject
	permit int    // how many may be inside; 0 means 1
	open   func(context.Context, *servers) (*client, error)
}

// client is what one process has of a subject: connections of its own.
type client struct {
	acquire measure.Acquire
	close   func(context.Context) error // nil if there is nothing to close
}

// on makes the end of a client that of its connections, too. If it was not opened, they end at once.
func (c *client) on(err error, end func() error) (*client, error) {
	if err != nil {
		return nil, errors.Join(err, end())
	}
	before := c.close
	c.close = func(ctx context.Context) error {
		var err error
		if before != nil {
			err = before(ctx)
		}
		return errors.Join(err, end())
	}
	return c, nil
}

// locks are the subjects that exclude each other.
func locks() []subject {
	return []subject{
		{name: oursQueue, ours: true, open: ourLock(redislock.Config{TTL: ttl})},
		{name: oursShared, ours: true, open: ourSharedLock},
		{name: "redsync, default delay", sends: "set", open: redsyncLock(0)},
		{name: "redsync, 1 ms", sends: "set", open: redsyncLock(time.Millisecond)},
		{name: "bsm/redislock, 50 ms", open: bsmLock(50 * time.Millisecond)},
		{name: bsmFast, open: bsmLock(time.Millisecond)},
	}
}

// Names that targets are about.
const (
	oursQueue  = "ours, queue"
	oursShared = "ours, share"
	bsmFast    = "bsm/redislock, 1 ms"
)

// unhurried leaves out the subjects that differ from another only in how they
// wait, for workloads in which nobody does.
func unhurried(all []subject) []subject {
	return slices.DeleteFunc(all, func(s subject) bool {
		return s.name == "redsync, 1 ms" || s.name == "bsm/redislock, 50 ms"
	})
}

// semaphores is ours, with that many permits.
func semaphores(permits int) []subject {
	return []subject{
		{name: "ours", ours: true, permit: permits, open: onRedis(func(rdb *redis.Client) (*client, error) {
			s, err := redissem.New(rdb, redissem.Config{TTL: ttl, Permits: permits})
			if err != nil {
				return nil, err
			}
			return &client{acquire: onePermit(s), close: s.Close}, nil
		})},
	}
}

func onePermit(s dlock.Semaphore) measure.Acquire {
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		lease, err := s.Acquire(ctx, key, 1)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
}

// onRedis is a client with a pool of its own, the same for every subject.
func onRedis(open func(*redis.Client) (*client, error)) func(context.Context, *servers) (*client, error) {
	return func(_ context.Context, on *servers) (*client, error) {
		rdb := on.redis.Client()
		c, err := open(rdb)
		return c.on(err, rdb.Close)
	}
}

func ourLock(cfg redislock.Config) func(context.Context, *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) {
		l, err := redislock.New(rdb, cfg)
		if err != nil {
			return nil, err
		}
		return &client{acquire: leases(l), close: l.Close}, nil
	})
}

// ourSharedLock is the queue, with a place for each acquisition, decorated by package share.
func ourSharedLock(ctx context.Context, on *servers) (*client, error) {
	return onRedis(func(rdb *redis.Client) (*client, error) {
		l, err := redislock.New(rdb, redislock.Config{TTL: ttl})
		if err != nil {
			return nil, err
		}
		return &client{acquire: leases(share.New(l)), close: l.Close}, nil
	})(ctx, on)
}

// leases takes keys of a lock of ours.
func leases(l dlock.Locker) measure.Acquire {
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		lease, err := l.Acquire(ctx, key)
		if err != nil {
			return nil, err
		}
		return lease.Release, nil
	}
}
