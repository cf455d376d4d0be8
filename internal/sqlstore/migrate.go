package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/platform/sqldb"
	"example.com/shop/internal/timeout/sqltimers"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the schema up to date. If it is, Migrate only reads, and needs no rights to change tables. Any number of
// instances may call it at once: one of them works, the others wait for it and find nothing to do. It blocks until then or
// until ctx ends. Every step can be run again after a crash in the middle of it, and is run again after a deadlock with an
// order. A user without the rights that migrations need is refused before anything changes.
func (s *Store) Migrate(ctx context.Context) error {
	if err := sqldb.Await(ctx, func() error { return s.migrate(ctx) }); err != nil {
		return fmt.Errorf("migrate %s: %w", s.engine.Address, err)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) (err error) {
	if err := s.RequireLatestSchema(ctx); !errors.Is(err, ErrNoSchema) {
		return err
	}
	pool := s.pool // whose connections to a file would see a new column too late, if another pool added it
	if !s.engine.OneWriter {
		pool = s.connect(s.engine.Unhurried, 1)
		defer func() { err = errors.Join(err, pool.Close()) }()
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	unlock, err := s.engine.LockSchema(ctx, conn)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, unlock(ctx, err))
	}()
	current, err := schemaVersion(ctx, conn)
	if err != nil && !errors.Is(err, ErrNoSchema) {
		return err
	}
	if err := s.createVersions(ctx, conn); sqldb.Is(err, sqldb.Denied) {
		return fmt.Errorf("the schema has version %d, and this program needs %d: run shop migrate as %s: %w",
			current, s.latest(), s.engine.Migrator, err)
	} else if err != nil {
		return err
	}
	for _, st := range s.steps {
		if st.version <= current {
			continue
		}
		if err := st.apply(ctx, conn); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
	}
	return nil
}

// createVersions creates the table of versions, unless it exists. If the user lacks a right that migrations need, it fails,
// and has changed nothing.
func (s *Store) createVersions(ctx context.Context, conn *sql.Conn) error {
	if s.engine.Alter != "" {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf(s.engine.Alter, "schema_migrations")); err != nil && !sqldb.Is(err, sqldb.NoSchema) {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER NOT NULL PRIMARY KEY)")
	return err
}

// latest is the version of the schema that this program needs.
func (s *Store) latest() int { return s.steps[len(s.steps)-1].version }

// schemaVersion returns the version of the schema, which is 0 if there is none, with [ErrNoSchema] if its table is missing.
func schemaVersion(ctx context.Context, db gorm.ConnPool) (version int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_migrations").Scan(&version)
	return version, schema(err)
}

// step is one change of the schema.
type step struct {
	version    int
	name       string
	statements []string
}

// steps returns all changes in their order: those of the application, and those of the packages that own the tables of
// timers, locks and members.
func steps(e *sqldb.Engine) ([]step, error) {
	files, err := fs.Glob(migrations, "migrations/*."+e.Dialect+".sql")
	if err != nil {
		return nil, err
	}
	steps := []step{
		{version: 2, name: "timers", statements: sqltimers.Schema(e)},
		{version: 7, name: "locks", statements: sqllock.Schema(e)},
		{version: 13, name: "members", statements: sqlcluster.Schema(e)},
	}
	for _, file := range files {
		prefix, _, _ := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
		version, err := strconv.Atoi(prefix)
		if err != nil {
			return nil, err
		}
		text, err := migrations.ReadFile(file)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{version: version, name: file, statements: strings.Split(string(text), ";\n")})
	}
	slices.SortFunc(steps, func(a, b step) int { return a.version - b.version })
	return steps, nil
}

// apply runs the statements and records that they were run. A change that was made before is no error: MySQL and SQLite
// lack "IF NOT EXISTS" and "IF EXISTS" for columns, indexes and constraints.
func (st step) apply(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range st.statements {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil && !sqldb.Is(err, sqldb.Repeated) {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, "INSERT INTO schema_migrations (version) VALUES (?)", st.version)
	if sqldb.Is(err, sqldb.Duplicate) { // the lock of a Galera node does not reach the next one, which has done the same
		return nil
	}
	return err
}
