package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/show/fleet"
)

const (
	instances    = 3
	startTimeout = 2 * time.Minute
	orderTTL     = 3 * time.Second
)

// shop is three instances, with proxies before their Redis and their database.
type shop struct {
	executable      string
	env             []string      // of the instances, besides the addresses of the stores
	stores          *fleet.Stores // with the addresses of the proxies
	redis, database *testbed.Proxy
	metrics         [instances]string // HOST:PORT, which an instance keeps when it is started again
	closers         []func() error

	mu    sync.Mutex
	alive [instances]*fleet.Fleet // guarded by mu; nil while it is down
}

// open starts the stores and the instances.
func open(ctx context.Context, executable string, c fleet.StoresConfig, env ...string) (s *shop, err error) {
	s = &shop{executable: executable, env: env}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.stores, err = fleet.OpenStores(ctx, c); err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.stores.Close)
	if s.redis, err = s.between(ctx, &s.stores.Redis); err != nil {
		return s, err
	}
	if s.database, err = s.between(ctx, &s.stores.Database); err != nil {
		return s, err
	}
	for i := range s.alive {
		if s.metrics[i], err = testbed.FreeAddress(ctx); err != nil {
			return s, err
		}
		if err := s.start(ctx, i); err != nil {
			return s, err
		}
	}
	return s, nil
}

// between puts a proxy before a store.
func (s *shop) between(ctx context.Context, address *string) (p *testbed.Proxy, err error) {
	if p, *address, err = fleet.Between(ctx, *address); err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fmt.Errorf("%q is no server, missing are %q: make servers", *address, s.stores.Missing)
	}
	s.closers = append(s.closers, p.Close)
	return p, nil
}

// start starts an instance, and returns when it serves.
func (s *shop) start(ctx context.Context, i int) error {
	f, err := fleet.Start(ctx, fleet.Config{
		Executable: s.executable, Dir: s.stores.Dir, First: i + 1, N: 1, Env: append(s.stores.Env(), s.env...),
		Args: []string{"--metrics-listen", s.metrics[i], "--order-ttl", orderTTL.String(), "--customer-rate", "50"},
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive[i] = f
	return nil
}

// kill ends an instance as a crash would.
func (s *shop) kill(i int) error {
	s.mu.Lock()
	f := s.alive[i]
	s.alive[i] = nil
	s.mu.Unlock()
	return f.Close()
}

// urls returns the base URLs of the instances that are not down.
func (s *shop) urls() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.alive {
		if f != nil {
			all = append(all, f.URLs()...)
		}
	}
	return all
}

func (s *shop) close() error {
	var errs []error
	for _, f := range s.alive {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
