package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

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
	if err := validDatabase(*database); err != nil {
		return nil, usageError{err}
	}
	if file, ok := strings.CutPrefix(*database, "sqlite:"); ok && name == "audit" {
		if _, err := os.Stat(file); err != nil { // opening it would create it
			return nil, fmt.Errorf("%s: %w", *database, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return sqlstore.Open(ctx, sqlstore.Config{URL: *database, Instance: name})
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, p process, args []string) (err error) {
	store, err := openDatabase(ctx, p, "migrate", "bring the schema up to date; safe from several instances at once", args)
	if err != nil {
		return err
	}
	defer closing(&err, store.Close)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "the schema is up to date")
	return nil
}
