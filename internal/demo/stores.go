package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// stores are what the instances share.
type stores struct {
	redis, database          string // URLs
	redlock, zookeeper, etcd string // as instances are notified of them; empty: none
	kinds                    Stores // for the report
	missing                  []string
	dir                      string
	closers                  []func() error
}

// openStores starts those that c wants and does not name.
func openStores(ctx context.Context, c Config) (s *stores, err error) {
	s = &stores{redis: c.Redis, database: c.Database, redlock: c.Redlock, zookeeper: c.ZooKeeper, etcd: c.Etcd}
	if s.dir, err = os.MkdirTemp("", "shop-demo-"); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(s.dir) })
	if c.All {
		if err := s.startServers(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.kinds.Redis = "redis"
	if s.redis == "" && c.URL == "" {
		s.kinds.Redis = "embedded"
		if err := s.embedRedis(); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded redis: %w", err), s.Close())
		}
	}
	s.database = cmp.Or(s.database, "sqlite:"+filepath.Join(s.dir, "shop.db"))
	s.kinds.Database, _, _ = strings.Cut(s.database, ":")
	if s.redlock != "" {
		s.kinds.Redlock = 1 + strings.Count(s.redlock, ",")
	}
	if s.zookeeper != "" {
		s.kinds.ZooKeeper = 1 + strings.Count(s.zookeeper, ",")
	}
	if s.etcd != "" {
		s.kinds.Etcd = 1 + strings.Count(s.etcd, ",")
	}
	return s, nil
}

// env has the addresses of the stores for an instance.
func (s *stores) env() []string {
	env := []string{"SHOP_DATABASE=" + s.database, "SHOP_REDIS=" + s.redis}
	for name, value := range map[string]string{"SHOP_REDLOCK": s.redlock, "SHOP_ZOOKEEPER": s.zookeeper, "SHOP_ETCD": s.etcd} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// embedRedis starts a Redis in this process. Its keys age only when it is told
// that time has passed, so it is notified all the time.
func (s *stores) embedRedis() error {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return err
	}
	s.redis = "redis://" + m.Addr() + "/0"
	stop := make(chan struct{})
	var clock sync.WaitGroup
	clock.Go(func() {
		t := time.NewTicker(20 * time.Millisecond)
		defer t.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case now := <-t.C:
				m.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	s.closers = append(s.closers, func() error {
		close(stop)
		clock.Wait()
		m.Close()
		return nil
	})
	return nil
}

// Close stops the embedded stores and removes their files.
func (s *stores) Close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
