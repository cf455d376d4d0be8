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

	"github.com/go-sql-driver/mysql"

	"example.com/shop/internal/cluster/sqlcluster"
	"example.com/shop/internal/dlock/sqllock"
	"example.com/shop/internal/timeout/sqltimers"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateLock is the name of the lock, as an expression: one per database of the server. It fits MySQL's limit, and
// avoids MD5, which MySQL no longer has.
const migrateLock = "CONCAT('shop:migrate:', LEFT(SHA2(DATABASE(), 256), 32))"

// Migrate brings the schema up to date. Any number of instances may call it at
// once: one of them works, the others wait for it and find nothing to do. It
// blocks until then or until ctx ends. Every step can be run again after a
// crash in the middle of it, and is run again after a deadlock with an order.
func (s *Store) Migrate(ctx context.Context) error {
	if err := patiently(ctx, func() error { return s.migrate(ctx) }); err != nil {
		return fmt.Errorf("migrate %s: %w", s.address, err)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) (err error) {
	pool := s.pool
	if s.dialect.unhurried != nil {
		pool = s.dialect.unhurried()
		defer func() { err = errors.Join(err, pool.Close()) }()
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	unlock, err := s.lockSchema(ctx, conn)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, unlock(ctx, err))
	}()
	_, err = conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER NOT NULL PRIMARY KEY)")
	if err != nil {
		return err
	}
	var current int
	if err := conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_migrations").Scan(&current); err != nil {
		return err
	}
	steps, err := s.dialect.steps()
	if err != nil {
		return err
	}
	for _, st := range steps {
		if st.version <= current {
			continue
		}
		if err := st.apply(ctx, conn); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
	}
	return nil
}

// step is one change of the schema.
type step struct {
	version    int
	name       string
	statements []string
}

// steps returns all changes in their order: those of the application, and those of the packages that own the tables of
// timers, locks and members.
func (d dialect) steps() ([]step, error) {
	files, err := fs.Glob(migrations, "migrations/*."+d.name+".sql")
	if err != nil {
		return nil, err
	}
	steps := []step{
		{version: 2, name: "timers", statements: sqltimers.Schema(d.timers)},
		{version: 7, name: "locks", statements: sqllock.Schema(d.locks)},
		{version: 13, name: "members", statements: sqlcluster.Schema(d.cluster)},
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

// apply runs the statements and records that they were run.
func (st step) apply(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range st.statements {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil && !repeated(err) {
			return err
		}
	}
	_, err := conn.ExecContext(ctx, "INSERT INTO schema_migrations (version) VALUES (?)", st.version)
	return err
}

// lockSchema keeps other migrations out until unlock is called. On SQLite it uses a write transaction around the whole
// migration, elsewhere a named lock, which ends with its session.
func (s *Store) lockSchema(ctx context.Context, conn *sql.Conn) (unlock func(context.Context, error) error, err error) {
	if s.dialect.name == "sqlite" {
		begin := func() error {
			_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE")
			return err
		}
		if err := patiently(ctx, begin); err != nil {
			return nil, err
		}
		return func(ctx context.Context, failed error) error {
			end := "COMMIT"
			if failed != nil {
				end = "ROLLBACK"
			}
			_, err := conn.ExecContext(ctx, end)
			return err
		}, nil
	}
	var got sql.NullInt64
	// Each wait is short, as the server does not notice at once that somebody has gone; the caller's context bounds the loop.
	for got.Int64 != 1 {
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+migrateLock+", 2)").Scan(&got); err != nil {
			return nil, err
		}
		if !got.Valid {
			return nil, errors.New("the server cannot lock the schema")
		}
	}
	return func(ctx context.Context, _ error) error {
		_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK("+migrateLock+")")
		return err
	}, nil
}

// repeated reports whether err means that a statement that adds or drops a column, an index or a constraint has been run
// before. MySQL and SQLite lack "IF NOT EXISTS" and "IF EXISTS" there.
func repeated(err error) bool {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		// Duplicate column, duplicate index, nothing to drop, and a duplicate constraint by MariaDB and by MySQL.
		return slices.Contains([]uint16{1060, 1061, 1091, 1826, 3822}, e.Number)
	}
	return err != nil && (strings.Contains(err.Error(), "duplicate column name") || strings.Contains(err.Error(), `no such column: "`))
}
