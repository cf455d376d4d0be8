package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"example.com/shop/internal/sqlstore"
)

// databaseFlag defines --database, which is where the stock and the orders are.
func databaseFlag(f *flags, database *string) {
	f.StringVar(database, "database", defaultDatabase, "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
}

// openBooks opens a database that shop migrate or an instance has prepared. Any other, such as one whose name is
// mistyped, is refused and left as it is.
func openBooks(ctx context.Context, instance, database string, access sqlstore.Access) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
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

// openStoreAt opens a database.
func openStoreAt(ctx context.Context, instance, database string, access sqlstore.Access) (*sqlstore.Store, error) {
	if err := validDatabase(database); err != nil {
		return nil, usageError{err}
	}
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: database, Instance: instance, Access: access})
	if access != sqlstore.AccessCreate && errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: check --database; shop migrate --create makes a new one", err)
	}
	return store, err
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, p process, args []string) (err error) {
	f := newFlags(p, "migrate", "bring the schema up to date; safe from several instances at once")
	var database string
	databaseFlag(f, &database)
	create := f.Bool("create", false, "make the schema if there is none, and the SQLite file; otherwise a database without a schema is refused")
	if err := f.parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	var store *sqlstore.Store
	if *create {
		store, err = openStoreAt(ctx, "migrate", database, sqlstore.AccessCreate)
	} else {
		store, err = openBooks(ctx, "migrate", database, sqlstore.AccessChange)
	}
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "the schema of %s is up to date\n", store.Address())
	return err
}
