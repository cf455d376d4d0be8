package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"example.com/shop/bench/measure"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/sqlstore"
)

// servers are what everything runs on.
type servers struct {
	redis  *measure.Server
	maria  *testbed.MariaDB
	folder string // for SQLite
	names  int    // databases so far
}

func start(ctx context.Context, address string) (*servers, error) {
	var err error
	s := &servers{}
	if s.redis, err = measure.OpenServer(ctx, address); err != nil {
		return nil, err
	}
	if s.maria, err = testbed.StartMariaDB(ctx, testbed.MariaDBConfig{Vars: mariaVars()}); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.folder, err = os.MkdirTemp("", "timers"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// mariaVars give the server the memory that a million rows need. Every commit is
// flushed, as by default.
func mariaVars() map[string]string {
	return map[string]string{"innodb_buffer_pool_size": "1G", "innodb_log_file_size": "256M"}
}

func (s *servers) close() (err error) {
	s.redis.Close()
	if s.maria != nil {
		err = s.maria.Close()
	}
	if s.folder != "" {
		err = cmp.Or(err, os.RemoveAll(s.folder))
	}
	return err
}

// versions are those of Redis and of the databases.
func (s *servers) versions(ctx context.Context) (map[string]string, error) {
	info, err := s.redis.Info(ctx, "server")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("mysql", s.maria.DSN())
	if err != nil {
		return nil, err
	}
	var maria string
	err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&maria)
	return map[string]string{"Redis": info["redis_version"], "MariaDB": maria}, errors.Join(err, db.Close())
}

// Engines.
const (
	inMaria  = "MariaDB"
	inSQLite = "SQLite"
)

// database opens an empty database of an engine with the product's schema and the
// product's connections. Drop closes it and deletes it.
func (s *servers) database(ctx context.Context, engine string) (store *sqlstore.Store, drop func(context.Context) error, err error) {
	s.names++
	name := "timers" + strconv.Itoa(s.names)
	file := filepath.Join(s.folder, name)
	url := "sqlite:" + file
	if engine == inMaria {
		if url, err = s.maria.NewDatabase(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	if store, err = sqlstore.Open(ctx, sqlstore.Config{URL: url, Instance: "timers"}); err != nil {
		return nil, nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		if err := store.Close(); err != nil || engine != inMaria {
			return errors.Join(err, os.RemoveAll(file))
		}
		return s.maria.DropDatabase(ctx, name)
	}, nil
}

// empty deletes everything in Redis.
func (s *servers) empty(ctx context.Context) error {
	if err := s.redis.Admin.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty Redis: %w", err)
	}
	return nil
}
