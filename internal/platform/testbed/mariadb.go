package testbed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// DefaultDatabase is the database that every MariaDB server starts with.
const DefaultDatabase = "shop"

// socket is relative to the data: the path of a socket may have about 100 bytes only.
const socket = "server.sock"

// MariaDBConfig says how to run a MariaDB server. The zero value is a server
// with the settings that the service expects of production: every commit is flushed.
type MariaDBConfig struct {
	// Programs is a folder that has mariadbd, which may be MySQL, and mariadb-install-db. Default: those of the system.
	Programs string
	// Vars are server variables, for instance innodb_snapshot_isolation: ON.
	// They win over the defaults.
	Vars map[string]string

	galera bool // a node of a cluster: it is ready when it is in step
	on     machine
}

// MariaDB is a MariaDB server that runs as a child process.
type MariaDB struct {
	*Process
	addr   string
	data   string
	galera bool
	on     machine
}

// StartMariaDB runs a MariaDB server on a free loopback port and returns when it executes SQL and has the database
// DefaultDatabase. The user is root, without a password. It needs mariadbd and mariadb-install-db.
func StartMariaDB(ctx context.Context, cfg MariaDBConfig) (*MariaDB, error) {
	process, err := openProcess(ctx, "mariadb", filepath.Join(cfg.Programs, "mariadbd"))
	if err != nil {
		return nil, err
	}
	m := &MariaDB{Process: process, data: filepath.Join(process.folder, "data"), galera: cfg.galera, on: cfg.on}
	process.ready = m.ready
	if err := m.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return m, nil
}

func (m *MariaDB) start(ctx context.Context, cfg MariaDBConfig) error {
	install, err := locate(filepath.Join(cfg.Programs, "mariadb-install-db"))
	if err != nil {
		return err
	}
	// A server that starts removes temporary tables from its tmpdir, those of
	// another server too, so each has a folder of its own.
	tmp := filepath.Join(m.folder, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return err
	}
	if m.galera {
		if err := ownedBy("mysql", m.folder, tmp); err != nil {
			return err
		}
	}
	first := append([]string{
		"--no-defaults", "--datadir=" + m.data, "--tmpdir=" + tmp, "--auth-root-authentication-method=normal", "--skip-test-db",
	}, cfg.asRoot()...)
	installing, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := run(installing, m.guard, m.folder, install, first...); err != nil {
		return err
	}
	program := m.path
	err = m.startOn(ctx, func(port int) error {
		m.addr = fmt.Sprint(cfg.on.host(), ":", port)
		m.path, m.args = cfg.on.command(program, append(cfg.args(port, m.data), "--tmpdir="+tmp))
		return nil
	})
	if err != nil {
		return err
	}
	return m.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(DefaultDatabase))
}

func (cfg MariaDBConfig) args(port int, data string) []string {
	args := []string{
		"--no-defaults", "--datadir=" + data, "--skip-name-resolve",
		"--skip-networking=0", "--bind-address=" + cfg.on.host(), fmt.Sprintf("--port=%d", port),
		"--socket=" + socket,
		"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M", "--loose-innodb-log-file-size=16M", // MySQL has no such size
		"--max-connections=1000", "--character-set-server=utf8mb4",
	}
	args = append(args, cfg.asRoot()...)
	for _, name := range slices.Sorted(maps.Keys(cfg.Vars)) {
		args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+cfg.Vars[name])
	}
	return args
}

// asRoot is the consent that the server demands before it runs as root. A node of a cluster runs as another user.
func (cfg MariaDBConfig) asRoot() []string {
	switch {
	case os.Getuid() != 0:
		return nil
	case cfg.galera:
		return []string{"--user=mysql"}
	}
	return []string{"--user=root"}
}

// Addr is the server's HOST:PORT.
func (m *MariaDB) Addr() string { return m.addr }

// URL is the address of DefaultDatabase as mysql://root@HOST:PORT/shop.
func (m *MariaDB) URL() string { return m.url(DefaultDatabase) }

// DSN is the address of DefaultDatabase for sql.Open with the driver "mysql".
func (m *MariaDB) DSN() string {
	return "root@tcp(" + m.addr + ")/" + DefaultDatabase
}

// NewDatabase creates an empty database and returns its URL. It fails when the
// database exists.
func (m *MariaDB) NewDatabase(ctx context.Context, name string) (string, error) {
	if err := m.Exec(ctx, "CREATE DATABASE "+quote(name)); err != nil {
		return "", err
	}
	return m.url(name), nil
}

// DropDatabase removes a database. One that does not exist is not an error.
func (m *MariaDB) DropDatabase(ctx context.Context, name string) error {
	return m.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name))
}

func (m *MariaDB) url(database string) string { return "mysql://root@" + m.addr + "/" + database }

func (m *MariaDB) driverConfig() *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr = "root", "tcp", m.addr
	if m.on != (machine{}) { // before StartGroup has created root@'%', root may only use the socket
		cfg.Net, cfg.Addr = "unix", filepath.Join(m.data, socket)
	}
	cfg.Timeout = attemptTimeout
	cfg.Logger = new(mysql.NopLogger) // While the server starts, errors are expected.
	return cfg
}

// ready asks who answers. It opens a connection of its own each time, because
// a pool would hide that the server had been down.
func (m *MariaDB) ready(ctx context.Context, _ int) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	return m.with(func(db *sql.DB) error {
		var data string
		if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&data); err != nil {
			return err
		}
		if err := expect("data folder", filepath.Clean(data), m.data); err != nil || !m.galera {
			return err
		}
		return synced(ctx, db)
	})
}

// Exec executes statements as root, each on a connection of its own.
func (m *MariaDB) Exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		err := m.with(func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, statement)
			return err
		})
		if err != nil {
			return fmt.Errorf("mariadb: %s: %w", statement, err)
		}
	}
	return nil
}

func (m *MariaDB) with(use func(*sql.DB) error) error {
	connector, err := mysql.NewConnector(m.driverConfig())
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(use(db), db.Close())
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
