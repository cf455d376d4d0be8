package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/shop/internal/testbed"
)

// redlockServers is how many servers of their own the votes of redlock come from.
const redlockServers = 5

// serversTimeout is how long servers may take to start.
const serversTimeout = 2 * time.Minute

// startup starts servers for stores, all at the same time.
type startup struct {
	stores *Stores // its closers and Missing are guarded by mu
	group  sync.WaitGroup

	mu   sync.Mutex
	errs []error // guarded by mu
}

// start starts a server in place of a store that is not named already. The name is what would have to be installed.
func (u *startup) start(name, already string, start func() (stop func() error, err error)) {
	if already != "" {
		return
	}
	u.group.Go(func() {
		stop, err := start()
		u.mu.Lock()
		defer u.mu.Unlock()
		switch {
		case errors.Is(err, testbed.ErrNotInstalled):
			u.stores.Missing = append(u.stores.Missing, name)
		case err != nil:
			u.errs = append(u.errs, fmt.Errorf("start %s: %w", name, err))
		default:
			u.stores.closers = append(u.stores.closers, stop)
		}
	})
}

// startServers starts real servers, all at the same time, in place of those stores that
// are not named, and notes what is not installed. They end with s, and with this process.
func (s *Stores) startServers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	servers, redises := startup{stores: s}, make([]string, redlockServers)
	servers.start("MariaDB", s.Database, func() (func() error, error) {
		m, err := testbed.StartMariaDB(ctx, testbed.MariaDBConfig{})
		if err != nil {
			return nil, err
		}
		s.Database = m.URL()
		return m.Close, nil
	})
	servers.start("Redis", s.Redis, func() (func() error, error) {
		r, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
		if err != nil {
			return nil, err
		}
		s.Redis = r.URL()
		return r.Close, nil
	})
	for i := range redises {
		servers.start("Redis", s.Redlock, func() (func() error, error) {
			r, err := testbed.StartRedis(ctx, testbed.RedisConfig{})
			if err != nil {
				return nil, err
			}
			redises[i] = r.URL()
			return r.Close, nil
		})
	}
	servers.start("ZooKeeper", s.ZooKeeper, func() (func() error, error) {
		z, err := testbed.StartZooKeeper(ctx, testbed.ZooKeeperConfig{})
		if err != nil {
			return nil, err
		}
		s.ZooKeeper = z.Addr()
		return z.Close, nil
	})
	servers.start("etcd", s.Etcd, func() (func() error, error) {
		e, err := testbed.StartEtcd(ctx, testbed.EtcdConfig{})
		if err != nil {
			return nil, err
		}
		s.Etcd = e.Addr()
		return e.Close, nil
	})
	servers.group.Wait()
	if s.Redlock == "" && !slices.Contains(redises, "") {
		s.Redlock = strings.Join(redises, ",")
	}
	slices.Sort(s.Missing)
	s.Missing = slices.Compact(s.Missing)
	return errors.Join(servers.errs...)
}
