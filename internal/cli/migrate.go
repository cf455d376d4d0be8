package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"example.com/shop/internal/app"
	"example.com/shop/internal/sqlstore"
)

const (
	// openTimeout is for a database to answer. A machine that has just begun is busy.
	openTimeout = 30 * time.Second

	// migrateTimeout is for the schema to be brought up to date, for which other instances may have to be waited for.
	migrateTimeout = 2 * time.Minute
)

// openDatabase opens a database that shop migrate or an instance has prepared. Any other, such as one whose name is
// mistyped, is refused and left as it is.
func openDatabase(ctx context.Context, instance, database string, access sqlstore.Access) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	store, err := openStoreAt(ctx, instance, database, access)
	if err != nil {
		return nil, err
	}
	if err := store.RequireSchema(ctx); err != nil {
		if errors.Is(err, sqlstore.ErrNoSchema) {
			err = fmt.Errorf("%s has no schema of shop: check --database; shop migrate --create makes one", store.Address())
		}
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// withDatabase calls f with a database that is opened for it, as [openDatabase] does, and with a context of a minute. If the schema is
// older than the program, it says what to do.
func withDatabase(
	ctx context.Context, instance, database string, access sqlstore.Access, f func(context.Context, *sqlstore.Store) error,
) (err error) {
	store, err := openDatabase(ctx, instance, database, access)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = f(ctx, store)
	if errors.Is(err, sqlstore.ErrNoSchema) {
		err = fmt.Errorf("%w: run shop migrate on %s", err, store.Address())
	}
	return err
}

// openStoreAt opens a database.
func openStoreAt(ctx context.Context, instance, database string, access sqlstore.Access) (*sqlstore.Store, error) {
	if err := app.ValidDatabase(database); err != nil {
		return nil, UsageError{err}
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: database, Instance: instance, Access: access})
	if access != sqlstore.AccessCreate && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: check --database; shop migrate --create makes a new one", err)
	}
	return store, app.Advised(err)
}

// migrateCommand brings the schema up to date.
func migrateCommand() Command {
	return Command{
		Name: "migrate", Summary: "Bring the database schema up to date",
		Details: "Several instances may run it at the same time. shop serve does the same at its start. After the command, instances need no right to change tables. On PostgreSQL, run it as the owner of the tables, with CREATE on the schema. The command waits at most 2m.",
		Examples: []Example{
			{"A new SQLite file", "shop migrate --create --database sqlite:shop.db"},
			{"An existing database, after an upgrade of the program", "shop migrate --database mysql://USER:PASSWORD@127.0.0.1:3306/shop"},
		},
		Define: func(f *Flags) Run {
			var database string
			var create bool
			f.DatabaseVar(&database)
			f.BoolVar(&create, "create", false, "create the schema if it is missing, and the SQLite file; without it, a database without a schema is refused")
			return func(ctx context.Context, _ []string) error { return migrate(ctx, f, database, create) }
		},
	}
}

func migrate(ctx context.Context, f *Flags, database string, create bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	var store *sqlstore.Store
	if create {
		store, err = openStoreAt(ctx, "migrate", database, sqlstore.AccessCreate)
	} else {
		store, err = openDatabase(ctx, "migrate", database, sqlstore.AccessChange)
	}
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	if err := store.Migrate(ctx); err != nil {
		return app.Advised(err)
	}
	_, err = fmt.Fprintf(f.Stdout, "the schema of %s is up to date\n", store.Address())
	return err
}
