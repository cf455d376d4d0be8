package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ServerConnections is how many connections an instance may keep open to a server by default.
const ServerConnections = 32 + asideConnections

// oneOrder is a row that is never committed.
const oneOrder = "INSERT INTO orders (id, customer_id, status, payment_id, created_at, expires_at) VALUES ('shop doctor', '', 'CANCELLED', '', 0, 0)"

// orderRights are the rights that an order needs for which tables.
var orderRights = []struct {
	form   string
	tables []string
}{
	{"INSERT INTO %[1]s SELECT * FROM %[1]s WHERE 1 = 0", []string{"orders", "order_lines", "ledger", "idempotency_keys", "timeouts", "leases", "customer_usage"}},
	{"UPDATE %s SET version = version WHERE 1 = 0", []string{"skus"}},
	{"UPDATE %s SET created_at = created_at WHERE 1 = 0", []string{"orders", "timeouts"}},
	{"UPDATE %s SET expires_at = expires_at WHERE 1 = 0", []string{"leases"}},
	{"DELETE FROM %s WHERE 1 = 0", []string{"timeouts", "idempotency_keys"}},
}

// TryWrite does to each table what an order does, in a transaction that it rolls back. It inserts one order, and otherwise
// touches no row. Next to a file it writes a small one. It returns the first refusal.
func (s *Store) TryWrite(ctx context.Context) error {
	if s.engine.OneWriter {
		if err := s.engine.Room(); err != nil {
			return err
		}
	}
	return s.writing(ctx, func() (err error) {
		tx, err := s.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tx.Rollback()) }()
		statements := []string{oneOrder}
		for _, right := range orderRights {
			for _, table := range right.tables {
				statements = append(statements, fmt.Sprintf(right.form, table))
			}
		}
		for _, statement := range statements {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return schema(err)
			}
		}
		return nil
	})
}

// SchemaVersion returns the version of the schema, with the error of [Store.RequireLatestSchema].
func (s *Store) SchemaVersion(ctx context.Context) (int, error) {
	version, err := schemaVersion(ctx, s.pool)
	return version, errors.Join(err, s.RequireLatestSchema(ctx))
}

// Settings returns settings of the server or the file by name, with the name of the engine as engine, and the isolation of
// sessions as isolation.
func (s *Store) Settings(ctx context.Context) (map[string]string, error) {
	is, err := s.engine.Settings(ctx, s.aside)
	if err == nil {
		is["engine"] = s.engine.Name
	}
	return is, err
}

// Now returns the time by the database's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	micros, err := s.now(ctx)
	return time.UnixMicro(micros), err
}
