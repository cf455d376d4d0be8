package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/platform/storeurl"
	"example.com/shop/internal/sqlstore"
)

// ready returns why store would not store an order now, or nil.
func ready(ctx context.Context, store *sqlstore.Store) error {
	err := store.Ready(ctx)
	if err == nil {
		return nil
	}
	part, _ := missing(err)
	return &httpapi.NotReadyError{Part: part, Err: err}
}

// Advised adds to the error of a database that does not respond, or is read-only, what to change, unless it says that.
func Advised(err error) error {
	if err == nil || !unreachable(err) || sqldb.Hint(err) != "" {
		return err
	}
	_, change := missing(err)
	return fmt.Errorf("%w: %s", err, change)
}

// missing says what an order lacks at a database that fails with err, and what to change.
func missing(err error) (part, change string) {
	switch {
	case errors.Is(err, sqlstore.ErrNoSchema):
		return "the schema of the database is older than the program", "run shop migrate"
	case errors.Is(err, sqldb.ErrMoved):
		return "the file of the database was deleted or replaced", "put the file back, or restart the instances"
	case errors.Is(err, sqldb.ErrNoRoom):
		return "no file can be written in the folder of the database", "make room on the disk, or give the user of the instance the right to write in the folder of --database"
	case sqldb.Is(err, sqldb.ReadOnly):
		return "the database is read-only", "name the server that accepts writes in --database, or end its read-only mode"
	case sqldb.Unable(err):
		return "the database does not let the user write", "give the user of --database the rights to read and write all tables, and check the settings and the disk of the server"
	}
	return "the database does not respond", cmp.Or(storeurl.Hint(err), "check --database, and that the server runs")
}
