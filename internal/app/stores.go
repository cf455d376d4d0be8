package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

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

// openStore opens the database, once it can be reached, and brings its schema up to date.
func openStore(ctx context.Context, c Config, tel *telemetry.Telemetry, log *slog.Logger) (store *sqlstore.Store, err error) {
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

func openStoreNow(ctx context.Context, c Config, tel *telemetry.Telemetry) (*sqlstore.Store, error) {
	opening, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, err := sqlstore.Open(opening, sqlstore.Config{
		URL: c.Database, Instance: c.Instance, Tracer: tel.TracerProvider,
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
