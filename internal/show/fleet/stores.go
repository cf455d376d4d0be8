package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// StoresConfig names the stores that run already. An empty database is an SQLite file in a temporary folder; others that are
// empty there are not.
type StoresConfig struct {
	Redis, Database          string // URLs
	Redlock, ZooKeeper, Etcd string // as instances are notified of them
	All                      bool   // start a server of each kind that is installed and not named
	Embed                    bool   // a Redis in this process, if there is none
}

// Stores are what instances share.
type Stores struct {
	StoresConfig

	Dir      string   // for files of the run; Close removes it
	Own      bool     // the Redis is of this run
	Embedded bool     // it is in this process
	Missing  []string // kinds of servers that are not installed

	closers []func() error
}

// OpenStores starts the stores that c wants and does not name. They end with Close, and with this process.
func OpenStores(ctx context.Context, c StoresConfig) (s *Stores, err error) {
	s = &Stores{StoresConfig: c, Own: c.Redis == "" && (c.All || c.Embed)}
	if s.Dir, err = os.MkdirTemp("", "shop-"); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(s.Dir) })
	if c.All {
		if err := s.startServers(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.Redis == "" && c.Embed {
		s.Embedded = true
		if err := s.embedRedis(); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded redis: %w", err), s.Close())
		}
	}
	s.Database = cmp.Or(s.Database, "sqlite:"+filepath.Join(s.Dir, "shop.db"))
	return s, nil
}

// Env has the addresses of the stores for an instance.
func (s *Stores) Env() []string {
	env := []string{"SHOP_DATABASE=" + s.Database, "SHOP_REDIS=" + s.Redis}
	for name, value := range map[string]string{"SHOP_REDLOCK": s.Redlock, "SHOP_ZOOKEEPER": s.ZooKeeper, "SHOP_ETCD": s.Etcd} {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// embedRedis starts a Redis in this process. Its clock moves only by FastForward, so a goroutine advances it all the
// time.
func (s *Stores) embedRedis() error {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return err
	}
	s.Redis = "redis://" + m.Addr() + "/0"
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
func (s *Stores) Close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}
