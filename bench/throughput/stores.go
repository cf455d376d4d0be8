package throughput

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/shop/internal/platform/testbed"
)

// stores are the servers of a run.
type stores struct {
	dir     string
	args    []string // as instances are notified of them
	mariadb *testbed.MariaDB
	redis   *testbed.Redis
	closers []io.Closer

	database string         // URL
	pids     map[string]int // of the servers whose processor time counts
}

// redlockServers is how many servers of their own the votes of redlock come from.
const redlockServers = 5

// mariadbVars give the database the memory that one of this use has. Every commit is flushed,
// as by default.
var mariadbVars = map[string]string{
	"innodb_buffer_pool_size": "512M", "innodb_log_file_size": "512M", "max_connections": "1000",
}

// postgresVars are the same for PostgreSQL.
var postgresVars = map[string]string{"shared_buffers": "512MB", "max_wal_size": "1GB", "max_connections": "1000"}

// startStores starts the servers that are named.
func startStores(ctx context.Context, names []string) (s *stores, err error) {
	s = &stores{pids: map[string]int{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "shop-lab-"); err != nil {
		return s, err
	}
	s.database = "sqlite:" + filepath.Join(s.dir, "shop.db")
	if slices.Contains(names, "mariadb") {
		if s.mariadb, err = keep(ctx, s, "mariadb", testbed.StartMariaDB, testbed.MariaDBConfig{Vars: mariadbVars}); err != nil {
			return s, err
		}
		s.database = s.mariadb.URL()
	}
	if slices.Contains(names, "postgresql") { // whose sessions are processes of their own, so their processor time is not counted
		p, err := keep(ctx, s, "", testbed.StartPostgres, testbed.PostgresConfig{Vars: postgresVars})
		if err != nil {
			return s, err
		}
		s.database = p.URL()
	}
	if s.redis, err = keep(ctx, s, "redis", testbed.StartRedis, testbed.RedisConfig{}); err != nil {
		return s, err
	}
	s.args = []string{"--database", s.database, "--redis", s.redis.URL()}
	if slices.Contains(names, "redlock") {
		urls := make([]string, redlockServers)
		for i := range urls {
			r, err := keep(ctx, s, "", testbed.StartRedis, testbed.RedisConfig{})
			if err != nil {
				return s, err
			}
			urls[i] = r.URL()
		}
		s.args = append(s.args, "--redlock", strings.Join(urls, ","))
	}
	if slices.Contains(names, "zookeeper") {
		z, err := keep(ctx, s, "zookeeper", testbed.StartZooKeeper, testbed.ZooKeeperConfig{})
		if err != nil {
			return s, err
		}
		s.args = append(s.args, "--zookeeper", z.Addr())
	}
	if slices.Contains(names, "etcd") {
		e, err := keep(ctx, s, "etcd", testbed.StartEtcd, testbed.EtcdConfig{})
		if err != nil {
			return s, err
		}
		s.args = append(s.args, "--etcd", e.Addr())
	}
	return s, nil
}

// server is a server that can be measured.
type server interface {
	io.Closer
	PID() int
}

// keep starts a server that is closed with s. Its processor time counts, if it has a kind.
func keep[S server, C any](ctx context.Context, s *stores, kind string, start func(context.Context, C) (S, error), c C) (S, error) {
	server, err := start(ctx, c)
	if err != nil {
		return server, err
	}
	s.closers = append(s.closers, server)
	if kind != "" {
		s.pids[kind] = server.PID()
	}
	return server, nil
}

// Close stops the servers and removes their files.
func (s *stores) Close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	if err := os.RemoveAll(s.dir); err != nil {
		errs = append(errs, fmt.Errorf("remove %s: %w", s.dir, err))
	}
	return errors.Join(errs...)
}
