package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
)

const (
	// startTimeout is for each store to answer at the start that an instance cannot do without. A machine that
	// has just begun is busy.
	startTimeout = 30 * time.Second

	// migrateTimeout is for the schema to be brought up to date, for which other instances may have to be waited for.
	migrateTimeout = 2 * time.Minute
)

// redisClients are connections to one Redis, with a pool for each purpose: so none waits for a connection that another one
// has. Subscriptions have connections outside of the pools. Without --redis all are nil.
type redisClients struct{ locks, units, timers, events redis.UniversalClient }

// openRedisClients opens them, which connects to nothing.
func openRedisClients(c Config, tel *telemetry.Telemetry, closers *closers) (all redisClients, err error) {
	if c.Redis == "" {
		return all, nil
	}
	for name, client := range map[string]*redis.UniversalClient{"locks": &all.locks, "units": &all.units, "timers": &all.timers, "events": &all.events} {
		rdb, err := redisclient.New(c.Redis)
		if err != nil {
			return all, fmt.Errorf("--redis: %w", err)
		}
		closers.pushClient("redis client", rdb.Close)
		if err := telemetry.InstrumentRedis(rdb, name, tel); err != nil {
			return all, err
		}
		*client = rdb
	}
	return all, nil
}

// openStore opens the database, once it can be reached, and brings its schema up to date.
func openStore(ctx context.Context, c Config, tel *telemetry.Telemetry, log *slog.Logger) (store *sqlstore.Store, err error) {
	err = await(ctx, log, func() error {
		store, err = openStoreNow(ctx, c, tel)
		return err
	})
	return store, Advised(err)
}

func openStoreNow(ctx context.Context, c Config, tel *telemetry.Telemetry) (*sqlstore.Store, error) {
	opening, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, err := sqlstore.Open(opening, sqlstore.Config{
		URL: c.Database, Instance: c.Instance, Tracer: tel.TracerProvider,
	})
	if err != nil {
		return nil, err
	}
	if err := telemetry.WatchDatabase(tel.MeterProvider, store.Pools); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	migrating, stop := context.WithTimeout(ctx, migrateTimeout)
	defer stop()
	if err := store.Migrate(migrating); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}
