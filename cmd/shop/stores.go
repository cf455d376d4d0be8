package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
	"example.com/shop/internal/timeout/redisindex"
)

// timersDrain is how long orders that are expiring may take to finish when the
// instance stops.
const timersDrain = 5 * time.Second

// openStore opens the database, once it can be reached, and brings its schema up to date.
func openStore(ctx context.Context, c serveConfig, tel *telemetry.Telemetry, log *slog.Logger) (store *sqlstore.Store, err error) {
	err = await(ctx, log, func() error {
		store, err = openStoreNow(ctx, c, tel)
		return err
	})
	if err == nil && store.Galera() {
		log.WarnContext(ctx, "the database is a node of a Galera cluster; all instances must write to this node",
			slog.String("database", store.Address()))
	}
	return store, err
}

func openStoreNow(ctx context.Context, c serveConfig, tel *telemetry.Telemetry) (*sqlstore.Store, error) {
	opening, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, err := sqlstore.Open(opening, sqlstore.Config{
		URL: c.database, Instance: c.instance, Tracer: tel.TracerProvider,
	})
	if err != nil {
		return nil, err
	}
	migrating, stop := context.WithTimeout(ctx, migrateTimeout)
	defer stop()
	if err := store.Migrate(migrating); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// openTimers returns the queue that ends the wait for payments: its timers are
// in the database, and Redis, if there is one, wakes whoever is to fire them.
// Without Redis each instance wakes itself.
func openTimers(ctx context.Context, c serveConfig, store *sqlstore.Store, leader dlock.Locker, told *news, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (*timeout.Queue, error) {
	timers, err := store.Timers()
	if err != nil {
		return nil, err
	}
	var index timeout.Index = memindex.New(memindex.Config{})
	if c.redis != "" {
		rdb, err := redisclient.New(c.redis) // its own, as the one for locks must never wait for a connection
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
		Leader:   leader,
		Offices:  store,
		Drain:    timersDrain,
		Observer: tellingTimers{observer, told},
		Trace:    tel.Traceparent,
	})
	if err != nil {
		return nil, err
	}
	return queue, telemetry.WatchTimers(tel.MeterProvider, queue.Stats, telemetry.WatchTimersConfig{Canary: c.canary})
}
