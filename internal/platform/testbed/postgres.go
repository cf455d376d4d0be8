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
	// Dir is the server's folder. Default: a temporary one, removed by Close.
	Dir string
	// Programs is a folder that has initdb and postgres. Default: those of the system.
	Programs string
	// Vars are settings, for instance fsync: off. They win over the defaults.
	Vars map[string]string
}

// Postgres is a PostgreSQL server that runs as a child process. It refuses root, so root runs it as the user postgres.
// Pause stops only the process that accepts connections.
type Postgres struct {
	*Process
	addr string
	data string
}

// StartPostgres runs a PostgreSQL server on a free loopback port and returns when it executes SQL and has the database
// DefaultDatabase. The user is shop, who may do everything, without a password. It needs initdb and postgres.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	initdb, err := locate(filepath.Join(cfg.Programs, "initdb"))
	if err != nil {
		return nil, err
	}
	process, err := openProcess(ctx, "postgres", filepath.Join(cfg.Programs, "postgres"), cfg.Dir)
	if err != nil {
		return nil, err
	}
	p := &Postgres{Process: process, data: filepath.Join(process.folder, "data")}
	process.ready = p.ready
	if err := p.start(ctx, initdb, cfg); err != nil {
		return nil, errors.Join(err, process.Close())
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, initdb string, cfg PostgresConfig) error {
	if err := ownedBy("postgres", p.folder); err != nil {
		return err
	}
	_, err := os.Stat(p.data)
	created := errors.Is(err, os.ErrNotExist)
	if created {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		path, args := asPostgres(initdb, "--pgdata="+p.data, "--username=shop", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
		if err := run(ctx, p.guard, p.folder, path, args...); err != nil {
			return err
		}
	}
	server := p.path
	err = p.startOn(ctx, func(port int) error {
		p.addr = loopback(port)
		p.path, p.args = asPostgres(server, cfg.args(port, p.data)...)
		return nil
	})
	if err != nil || !created {
		return err
	}
	return p.exec(ctx, "CREATE DATABASE "+DefaultDatabase)
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

// Addr is the server's HOST:PORT.
func (p *Postgres) Addr() string { return p.addr }

// URL is the address of DefaultDatabase as postgres://shop@HOST:PORT/shop.
func (p *Postgres) URL() string { return "postgres://shop@" + p.addr + "/" + DefaultDatabase }

// ready asks who answers, over a connection of its own.
func (p *Postgres) ready(ctx context.Context, _ int) error {
	return p.with(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		results, err := conn.Exec(ctx, "SHOW data_directory").ReadAll()
		if err != nil {
			return err
		}
		return expect("data folder", string(results[0].Rows[0][0]), p.data)
	})
}

func (p *Postgres) exec(ctx context.Context, statement string) error {
	return p.with(ctx, func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, statement).ReadAll()
		return err
	})
}

func (p *Postgres) with(ctx context.Context, use func(context.Context, *pgconn.PgConn) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	conn, err := pgconn.Connect(ctx, "postgres://shop@"+p.addr+"/postgres?sslmode=disable")
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, conn), conn.Close(ctx))
}
