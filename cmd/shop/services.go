package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/stock"
)

const (
	// probeEvery is the time between two looks at a lock service that may be away. They overlap:
	// of several servers one that has stopped keeps whoever asks it waiting, and the next look
	// may well ask another one.
	probeEvery = 300 * time.Millisecond

	// probes is how many looks may be under way.
	probes = 16
)

var (
	_ stock.Watched  = (*service)(nil)
	_ dlock.Reseeder = (*service)(nil)
)

// service is a lock service that may be away. It is if an acquisition has failed and nobody else has
// had an answer since that began: an ensemble of which one server has stopped fails some and answers
// others. From then on nobody waits for it, least of all an order that holds the lock of another
// SKU meanwhile, until run has found out that it answers.
type service struct {
	dlock.Locker
	name    string // that of the flag
	address string // without secrets
	log     *slog.Logger
	suspect chan struct{} // holds one token when run is to look

	mu       sync.Mutex
	answered time.Time // when somebody had an answer of late
	err      error     // why it is away; nil: it answers
}

// Away implements [stock.Watched].
func (s *service) Away() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// hear notes how a call ended that began at that time.
func (s *service) hear(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.answered, s.err = time.Now(), nil
	case s.answered.Before(began):
		s.err = fmt.Errorf("%s is away: %w", s.name, err)
	}
}

// Acquire implements [dlock.Locker].
func (s *service) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return s.watch(ctx, key, s.Locker.Acquire)
}

// TryAcquire implements [dlock.Locker].
func (s *service) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return s.watch(ctx, key, s.Locker.TryAcquire)
}

func (s *service) watch(ctx context.Context, key string, acquire func(context.Context, string) (*dlock.Lease, error)) (*dlock.Lease, error) {
	if err := s.Away(); err != nil {
		return nil, err
	}
	began := time.Now()
	lease, err := acquire(ctx, key)
	s.heard(ctx, began, err)
	return lease, err
}

// heard notes how a call with ctx ended that began at that time.
func (s *service) heard(ctx context.Context, began time.Time, err error) {
	switch {
	case err == nil, errors.Is(err, dlock.ErrHeld), errors.Is(err, dlock.ErrReentry):
		s.hear(began, nil)
		return
	case ctx.Err() == nil && !errors.Is(err, dlock.ErrLost): // otherwise it may be the wait of this caller that has ended
		s.hear(began, err)
	}
	select {
	case s.suspect <- struct{}{}:
	default:
	}
}

// counter is one in a store that is a lock service as well, and is away with it.
type counter struct {
	stock.Counter

	service *service
}

// Take implements [stock.Counter].
func (c counter) Take(ctx context.Context, sku string, wanted []int64) (stock.Taking, error) {
	if err := c.service.Away(); err != nil {
		return stock.Taking{}, err
	}
	began := time.Now()
	t, err := c.Counter.Take(ctx, sku, wanted)
	c.service.heard(ctx, began, err)
	return t, err
}

// Flush implements [stock.Counter].
func (c counter) Flush(ctx context.Context, sku string) {
	if c.service.Away() == nil {
		c.Counter.Flush(ctx, sku)
	}
}

// Reseed implements [dlock.Reseeder].
func (s *service) Reseed(ctx context.Context, key string, atLeast uint64) error {
	next, ok := s.Locker.(dlock.Reseeder)
	if !ok {
		return fmt.Errorf("%s: %w", s.name, errors.ErrUnsupported)
	}
	return next.Reseed(ctx, key, atLeast)
}

// look finds out whether the service answers before ctx ends.
func (s *service) look(ctx context.Context) error {
	began := time.Now()
	err := try(ctx, s.Locker)
	if err == nil || ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.hear(began, err)
	}
	return err
}

// run looks after the service until ctx ends, whenever it is suspect.
func (s *service) run(ctx context.Context) error {
	told := s.Away() != nil // at the start
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.suspect:
			s.await(ctx, told)
			told = false
		}
	}
	return nil
}

// await returns when the service answers, or ctx ends. It says if the service is away, unless that
// has been told, and then when it is back.
func (s *service) await(ctx context.Context, told bool) {
	ctx, stop := context.WithCancel(ctx)
	var looks errgroup.Group
	looks.SetLimit(probes)
	defer func() { _ = looks.Wait() }()
	defer stop()
	failed, back := make(chan error, probes), make(chan struct{})
	found := sync.OnceFunc(func() { close(back) })
	next := time.NewTicker(probeEvery)
	defer next.Stop()
	for {
		looks.TryGo(func() error {
			call, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			if err := s.look(call); err == nil {
				found()
			} else if ctx.Err() == nil {
				failed <- err
			}
			return nil
		})
		for waiting := true; waiting; {
			select {
			case <-back:
				if told {
					s.log.InfoContext(ctx, "lock service is back", slog.String("service", s.name))
				}
				return
			case <-ctx.Done():
				return
			case err := <-failed:
				if away := s.Away(); away != nil && !told {
					s.warn(ctx, err)
					told = true
				}
			case <-next.C:
				waiting = false
			}
		}
	}
}

func (s *service) warn(ctx context.Context, err error) {
	s.log.WarnContext(ctx, "lock service is away; orders that need it are refused until it answers",
		slog.String("service", s.name), slog.String("address", s.address), slog.String("error", err.Error()))
}

// services are those that an instance was started with, beside its database.
type services []*service

// watched returns lockers that fail at once while they are away, and the services that they are of.
func watched(raw stock.Lockers, c serveConfig, log *slog.Logger) (stock.Lockers, services) {
	var all services
	for _, each := range []struct {
		locker        *dlock.Locker
		name, address string
	}{
		{&raw.Redis, "redis", redacted(c.redis)},
		{&raw.Redlock, "redlock", allRedacted(c.redlock)},
		{&raw.ZooKeeper, "zookeeper", c.zookeeper},
		{&raw.Etcd, "etcd", c.etcd},
	} {
		if *each.locker != nil {
			s := &service{Locker: *each.locker, name: each.name, address: each.address, log: log, suspect: make(chan struct{}, 1)}
			all = append(all, s)
			*each.locker = s
			if each.locker == &raw.Redis && raw.Units != nil {
				raw.Units = counter{raw.Units, s}
			}
		}
	}
	return raw, all
}

// look asks all of them at once whether they are there, and says which are not.
func (all services) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var group sync.WaitGroup
	for _, s := range all {
		group.Go(func() {
			if err := s.look(ctx); err != nil {
				s.warn(ctx, err)
				s.suspect <- struct{}{}
			}
		})
	}
	group.Wait()
}

// run looks after all of them until ctx ends.
func (all services) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range all {
		g.Go(func() error { return s.run(ctx) })
	}
	return g.Wait()
}
