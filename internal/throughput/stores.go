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

	"example.com/shop/internal/testbed"
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
		if s.mariadb, err = keep(s, func() (*testbed.MariaDB, error) {
			return testbed.StartMariaDB(ctx, testbed.MariaDBConfig{Vars: mariadbVars})
		}); err != nil {
			return s, err
		}
		s.database = s.mariadb.URL()
		s.pids["mariadb"] = s.mariadb.PID()
	}
	if s.redis, err = keep(s, func() (*testbed.Redis, error) { return testbed.StartRedis(ctx, testbed.RedisConfig{}) }); err != nil {
		return s, err
	}
	s.pids["redis"] = s.redis.PID()
	s.args = []string{"--database", s.database, "--redis", s.redis.URL()}
	if slices.Contains(names, "redlock") {
		urls := make([]string, redlockServers)
		for i := range urls {
			r, err := keep(s, func() (*testbed.Redis, error) { return testbed.StartRedis(ctx, testbed.RedisConfig{}) })
			if err != nil {
				return s, err
			}
			urls[i] = r.URL()
		}
		s.args = append(s.args, "--redlock", strings.Join(urls, ","))
	}
	if slices.Contains(names, "zookeeper") {
		z, err := keep(s, func() (*testbed.ZooKeeper, error) { return testbed.StartZooKeeper(ctx, testbed.ZooKeeperConfig{}) })
		if err != nil {
			return s, err
		}
		s.pids["zookeeper"] = z.PID()
		s.args = append(s.args, "--zookeeper", z.Addr())
	}
	if slices.Contains(names, "etcd") {
		e, err := keep(s, func() (*testbed.Etcd, error) { return testbed.StartEtcd(ctx, testbed.EtcdConfig{}) })
		if err != nil {
			return s, err
		}
		s.pids["etcd"] = e.PID()
		s.args = append(s.args, "--etcd", e.Addr())
	}
	return s, nil
}

// keep has what was started closed with s.
func keep[T io.Closer](s *stores, start func() (T, error)) (T, error) {
	c, err := start()
	if err == nil {
		s.closers = append(s.closers, c)
	}
	return c, err
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
