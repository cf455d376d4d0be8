package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
	"example.com/shop/internal/timeout/redisindex"
)

// timersDrain is how long orders that are expiring may take to finish when the
// instance stops.
const timersDrain = 5 * time.Second

// openStore opens the database and brings its schema up to date.
func openStore(ctx context.Context, c serveConfig, tel *telemetry.Telemetry) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: c.database, Instance: c.instance, Tracer: tel.TracerProvider,
	})
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// locks is what an instance has of Redis; without --redis it has nothing.
type locks struct {
	rdb    redis.UniversalClient
	queue  *redislock.Locker
	locker dlock.Locker // the same, measured
}

// ping asks Redis whether it is there.
func (l locks) ping(ctx context.Context) error {
	if l.rdb == nil {
		return nil
	}
	return l.rdb.Ping(ctx).Err()
}

// openRedis connects the lock service. It refuses a Redis that may evict a lock
// to make room.
func openRedis(ctx context.Context, c serveConfig, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (locks, error) {
	if c.redis == "" {
		return locks{}, nil
	}
	redis.SetLogger(silent{})
	rdb, err := redislock.NewClient(c.redis)
	if err != nil {
		return locks{}, usageError{fmt.Errorf("--redis: %w", err)}
	}
	closers.push(func(context.Context) error { return rdb.Close() })
	if err := telemetry.InstrumentRedis(rdb, tel); err != nil {
		return locks{}, err
	}
	l := locks{rdb: rdb}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := l.ping(ctx); err != nil {
		return locks{}, fmt.Errorf("open redis %s: %w", redacted(c.redis), err)
	}
	if policy := rdb.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]; policy != "" && policy != "noeviction" {
		return locks{}, fmt.Errorf("open redis %s: maxmemory-policy is %s and may evict locks; set it to noeviction", redacted(c.redis), policy)
	}
	locker, err := redislock.New(rdb, redislock.Config{TTL: leaseTTL})
	if err != nil {
		return locks{}, err
	}
	closers.push(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := locker.Close(ctx); err != nil { // Redis is away: the TTL gives back what it may have granted
			log.WarnContext(ctx, "locks are left to their TTL", slog.String("error", err.Error()))
		}
		return nil
	})
	l.queue = locker
	l.locker, err = otellock.New(locker, otellock.Config{Backend: "redis", TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider})
	return l, err
}

// silent keeps go-redis from printing what its errors say as well.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// openTimers returns the queue that ends the wait for payments: its timers are
// in the database, and Redis, if there is one, wakes whoever is to fire them.
// Without Redis each instance wakes itself.
func openTimers(ctx context.Context, c serveConfig, store *sqlstore.Store, l locks, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (*timeout.Queue, error) {
	timers, err := store.Timers()
	if err != nil {
		return nil, err
	}
	var index timeout.Index = memindex.New(memindex.Config{})
	if c.redis != "" {
		rdb, err := redislock.NewClient(c.redis) // its own, as the one for locks must never wait for a connection
		if err != nil {
			return nil, usageError{fmt.Errorf("--redis: %w", err)}
		}
		closers.push(func(context.Context) error { return rdb.Close() })
		if index, err = redisindex.New(rdb, redisindex.Config{}); err != nil {
			return nil, err
		}
	}
	observer, err := telemetry.NewTimers(ctx, tel.MeterProvider, telemetry.TimersConfig{Canary: c.canary, Logger: log})
	if err != nil {
		return nil, err
	}
	queue, err := timeout.New(timers, index, timeout.Config{
		Instance: c.instance,
		Canary:   c.canary,
		Lane:     c.lane,
		Leader:   l.locker,
		Drain:    timersDrain,
		Observer: observer,
		Trace:    tel.Traceparent,
	})
	if err != nil {
		return nil, err
	}
	return queue, telemetry.WatchTimers(tel.MeterProvider, queue.Stats, telemetry.WatchTimersConfig{Canary: c.canary})
}
