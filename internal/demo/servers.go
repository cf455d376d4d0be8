package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"example.com/shop/internal/testbed"
)

// redlockServers is how many servers of their own the votes of redlock come from.
const redlockServers = 5

// startServers starts real servers, all at the same time, in place of those stores that
// are not named, and notes what is not installed. They end with s, and with this process.
func (s *stores) startServers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		errs    []error
		redises = make([]string, redlockServers)
	)
	// The name is what would have to be installed.
	start := func(name, already string, start func() (stop func() error, err error)) {
		if already != "" {
			return
		}
		group.Go(func() {
			stop, err := start()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, testbed.ErrNotInstalled):
				s.missing = append(s.missing, name)
			case err != nil:
				errs = append(errs, fmt.Errorf("start %s: %w", name, err))
			default:
				s.closers = append(s.closers, stop)
			}
		})
	}
	start("MariaDB", s.database, func() (func() error, error) {
		m, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{})
		if err != nil {
			return nil, err
		}
		s.database = m.URL()
		return m.Close, nil
	})
	start("Redis", s.redis, func() (func() error, error) {
		r, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
		if err != nil {
			return nil, err
		}
		s.redis = r.URL()
		return r.Close, nil
	})
	for i := range redises {
		start("Redis", s.redlock, func() (func() error, error) {
			r, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
			if err != nil {
				return nil, err
			}
			redises[i] = r.URL()
			return r.Close, nil
		})
	}
	start("ZooKeeper", s.zookeeper, func() (func() error, error) {
		z, err := testbed.StartZooKeeper(ctx, testbed.ZooKeeperConfig{})
		if err != nil {
			return nil, err
		}
		s.zookeeper = z.Addr()
		return z.Close, nil
	})
	start("etcd", s.etcd, func() (func() error, error) {
		e, err := testbed.StartEtcd(ctx, testbed.EtcdConfig{})
		if err != nil {
			return nil, err
		}
		s.etcd = e.Addr()
		return e.Close, nil
	})
	group.Wait()
	if s.redlock == "" && !slices.Contains(redises, "") {
		s.redlock = strings.Join(redises, ",")
	}
	slices.Sort(s.missing)
	s.missing = slices.Compact(s.missing)
	return errors.Join(errs...)
}
