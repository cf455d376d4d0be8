package demo

import (
	"cmp"
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

// stores are the two that the instances share.
type stores struct {
	redis, database         string // URLs
	redisKind, databaseKind string // for the report
	dir                     string
	closers                 []func() error
}

// openStores starts the embedded stores that c does not replace by real ones.
func openStores(c Config) (s *stores, err error) {
	s = &stores{redis: c.Redis, redisKind: "redis", database: c.Database}
	if s.dir, err = os.MkdirTemp("", "shop-demo-"); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(s.dir) })
	if s.redis == "" && c.Target == "" {
		s.redisKind = "embedded"
		if err := s.embedRedis(); err != nil {
			return nil, errors.Join(fmt.Errorf("embedded redis: %w", err), s.Close())
		}
	}
	s.database = cmp.Or(s.database, "sqlite:"+filepath.Join(s.dir, "shop.db"))
	s.databaseKind, _, _ = strings.Cut(s.database, ":")
	return s, nil
}

// args are what an instance is told about the stores.
func (s *stores) args() []string { return []string{"--database", s.database, "--redis", s.redis} }

// embedRedis starts a Redis in this process. Its keys age only when it is told
// that time has passed, so it is told all the time.
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
