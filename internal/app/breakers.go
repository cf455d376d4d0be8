package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/breaker"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

// breakers are the circuit breakers of the configured lock services, without the database.
type breakers []*breaker.Breaker

var _ stock.Watched = (*breaker.Breaker)(nil) // strategies check for it

// withBreakers returns lockers that fail at once while their service is unavailable, and their breakers.
func withBreakers(raw stock.Lockers, c Config, log *slog.Logger) (stock.Lockers, breakers) {
	var all breakers
	for _, each := range []struct {
		locker        *dlock.Locker
		name, address string
	}{
		{&raw.Redis, "redis", redacted(c.Redis)},
		{&raw.Redlock, "redlock", allRedacted(c.Redlock)},
		{&raw.ZooKeeper, "zookeeper", redacted(c.ZooKeeper)},
		{&raw.Etcd, "etcd", redacted(c.Etcd)},
	} {
		if *each.locker == nil {
			continue
		}
		b := breaker.New(*each.locker, breaker.Config{
			Name: each.name,
			Unavailable: func(ctx context.Context, err error) {
				log.WarnContext(ctx, "lock service unavailable; orders that need it are refused until it recovers",
					slog.String("service", each.name), slog.String("address", each.address), slog.String("error", err.Error()))
			},
			Recovered: func(ctx context.Context) {
				log.InfoContext(ctx, "lock service recovered", slog.String("service", each.name))
			},
		})
		all = append(all, b)
		*each.locker = b
		if each.locker == &raw.Redis && raw.Units != nil {
			raw.Units = counter{raw.Units, b}
		}
	}
	return raw, all
}

// watch makes a metric of each.
func (all breakers) watch(mp metric.MeterProvider) error {
	var errs []error
	for _, b := range all {
		errs = append(errs, telemetry.WatchBreaker(mp, b.Name(), b.Unavailable))
	}
	return errors.Join(errs...)
}

// probe probes all services concurrently.
func (all breakers) probe(ctx context.Context) {
	var group sync.WaitGroup
	for _, b := range all {
		group.Go(func() { b.Probe(ctx) })
	}
	group.Wait()
}

// run probes services that are unavailable, until ctx ends.
func (all breakers) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range all {
		g.Go(func() error { return b.Run(ctx) })
	}
	return g.Wait()
}

// counter is a [stock.Counter] whose store is also a lock service. Both are unavailable together.
type counter struct {
	stock.Counter

	breaker *breaker.Breaker
}

// Take implements [stock.Counter].
func (c counter) Take(ctx context.Context, sku string, wanted []int64) (stock.Hold, error) {
	if err := c.breaker.Unavailable(); err != nil {
		return stock.Hold{}, err
	}
	began := time.Now()
	t, err := c.Counter.Take(ctx, sku, wanted)
	c.breaker.Record(ctx, began, err)
	return t, err
}

// Flush implements [stock.Counter].
func (c counter) Flush(ctx context.Context, sku string) {
	if c.breaker.Unavailable() == nil {
		c.Counter.Flush(ctx, sku)
	}
}
