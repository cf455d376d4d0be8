package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// PostgresConfig says how to run a PostgreSQL server. The zero value is a server with the settings that the service
// expects of production: every commit is flushed.
type PostgresConfig struct {
	// Programs is a folder that has initdb and postgres. Default: those of the system.
	Programs string
	// Of is a server of which this one begins as a copy, and as a standby. Default: none.
	Of *Postgres
	// Vars are settings, for instance fsync: off. They win over the defaults.
	Vars map[string]string
}

// Postgres is a PostgreSQL server that runs as a child process. It refuses root, so root runs it as the user postgres.
// Stop ends all sessions, and waits until standbys have what it has committed. Pause stops all processes on Linux, and elsewhere
// only the one that accepts connections.
type Postgres struct {
	*Process
	addr     string
	data     string
	programs string
}

// StartPostgres runs a PostgreSQL server on a free loopback port and returns when it executes SQL and has the database
// DefaultDatabase. The user is shop, who may do everything, without a password. It needs initdb and postgres.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	process, err := openProcess(ctx, "postgres", filepath.Join(cfg.Programs, "postgres"))
	if err != nil {
		return nil, err
	}
	p := &Postgres{Process: process, data: filepath.Join(process.folder, "data"), programs: cfg.Programs}
	process.ready, process.quit = p.ready, interrupt
	if err := p.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, cfg PostgresConfig) error {
	if err := ownedBy("postgres", p.folder); err != nil {
		return err
	}
	create := []string{"initdb", "--username=shop", "--auth=trust", "--encoding=UTF8", "--no-locale"}
	if cfg.Of != nil {
		create = []string{"pg_basebackup", "--dbname=" + cfg.Of.URL(), "--checkpoint=fast", "--write-recovery-conf"}
	}
	creating, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.Run(creating, create[0], append(create[1:], "--pgdata="+p.data, "--no-sync")...); err != nil {
		return err
	}
	server := p.path
	err := p.startOn(ctx, func(port int) error {
		p.addr = loopback(port)
		p.path, p.args = asPostgres(server, cfg.args(port, p.data)...)
		return nil
	})
	if err != nil || cfg.Of != nil {
		return err
	}
	return execPostgres(ctx, p.addr, "CREATE DATABASE "+DefaultDatabase)
}

func (cfg PostgresConfig) args(port int, data string) []string {
	vars := map[string]string{
		"listen_addresses": "127.0.0.1", "port": fmt.Sprint(port), "unix_socket_directories": "", "max_connections": "500", "shared_buffers": "64MB",
	}
	maps.Copy(vars, cfg.Vars)
	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		args = append(args, "-c", name+"="+vars[name])
	}
	return args
}

// asPostgres returns how root runs a program as the user postgres.
func asPostgres(program string, args ...string) (path string, all []string) {
	if os.Getuid() != 0 {
		return program, args
	}
	return "/usr/bin/setpriv", append([]string{"--reuid=postgres", "--regid=postgres", "--clear-groups", program}, args...)
}

// Run executes a program of PostgreSQL while the server does not run, as its user.
func (p *Postgres) Run(ctx context.Context, program string, args ...string) error {
	path, err := locate(filepath.Join(p.programs, program))
	if err != nil {
		return err
	}
	path, args = asPostgres(path, args...)
	return run(ctx, p.guard, p.folder, path, args...)
}

// WriteFile writes a file into the folder with the data.
func (p *Postgres) WriteFile(name string, text []byte) error {
	file := filepath.Join(p.data, name)
	return errors.Join(os.WriteFile(file, text, 0o600), ownedBy("postgres", file))
}

// Data is the folder with the data of the server.
func (p *Postgres) Data() string { return p.data }

// Addr is the server's HOST:PORT.
func (p *Postgres) Addr() string { return p.addr }

// URL is the address of DefaultDatabase as postgres://shop@HOST:PORT/shop.
func (p *Postgres) URL() string { return "postgres://shop@" + p.addr + "/" + DefaultDatabase }

// ready asks who answers, over a connection of its own.
func (p *Postgres) ready(ctx context.Context, _ int) error {
	return withPostgres(ctx, p.addr, func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, "SHOW data_directory").ReadAll()
		if err != nil {
			return err
		}
		return expect("data folder", string(results[0].Rows[0][0]), p.data)
	})
}

func execPostgres(ctx context.Context, addr, statement string) error {
	return withPostgres(ctx, addr, func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, statement).ReadAll()
		return err
	})
}

func withPostgres(ctx context.Context, addr string, use func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := pgconn.Connect(ctx, "postgres://shop@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, conn), conn.Close(ctx))
}
