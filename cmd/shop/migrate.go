package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"example.com/shop/internal/sqlstore"
)

// openDatabase parses the --database flag of a command that has no other flags
// and opens the store, with the time it may take.
func openDatabase(ctx context.Context, p process, name, what string, args []string) (*sqlstore.Store, error) {
	f := newFlags(p, name, what)
	database := f.String("database", defaultDatabase, "sqlite:FILE or mysql://USER:PASSWORD@HOST:3306/DB")
	if err := f.parse(args); err != nil {
		return nil, err
	}
	if name != "migrate" {
		return openBooks(ctx, name, *database)
	}
	return openStoreAt(ctx, name, *database)
}

// openBooks opens a database that must be there: a file that is not would be created.
func openBooks(ctx context.Context, name, database string) (*sqlstore.Store, error) {
	if file, ok := strings.CutPrefix(database, "sqlite:"); ok && file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%s: %w", database, err)
		}
	}
	return openStoreAt(ctx, name, database)
}

func openStoreAt(ctx context.Context, name, database string) (*sqlstore.Store, error) {
	if err := validDatabase(database); err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return sqlstore.Open(ctx, sqlstore.Config{URL: database, Instance: name})
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, p process, args []string) (err error) {
	store, err := openDatabase(ctx, p, "migrate", "bring the schema up to date; safe from several instances at once", args)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "the schema is up to date")
	return nil
}
