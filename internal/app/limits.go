package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/dlock/permits/redispermits"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/httpapi/ratelimit"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock/waitlist"
	"example.com/shop/internal/telemetry"
)

const (
	// permitsTTL is how long the permits of an instance that died are missing.
	permitsTTL = 3 * time.Second

	// permitsTimeout is how long Redis may take to answer about permits, before an instance
	// limits orders by itself.
	permitsTimeout = 500 * time.Millisecond

	permitsKey = "orders"
)

// limits are the limits of orders in flight, of rates and of the waitlist. Each part may be nil.
type limits struct {
	permits  *permits.Limiter
	rates    *ratelimit.Limiter
	waitlist *waitlist.Waitlist
}

func openLimits(ctx context.Context, c Config, l locks, closers *closers, log *slog.Logger) (limits, error) {
	var s limits
	var err error
	if s.permits, err = openPermits(ctx, c, l, log); err != nil {
		return s, err
	}
	if c.CustomerRate > 0 {
		s.rates, err = ratelimit.New(l.rdb, ratelimit.Config{Rate: c.CustomerRate, Burst: 2 * c.CustomerRate, Instances: s.instances})
		if err != nil {
			return s, err
		}
	}
	s.waitlist, err = openWaitlist(l, closers, log)
	return s, err
}

// resize changes how many orders may be placed at the same time.
func (l limits) resize(ctx context.Context, n int) error {
	if l.permits == nil {
		return nil
	}
	return l.permits.Resize(ctx, n)
}

// permitted returns how many permits there are, as far as this instance knows; 0 if there is no bound.
func (l limits) permitted() int {
	if l.permits == nil {
		return 0
	}
	return l.permits.Stats().Permits
}

// watch makes metrics of the limits.
func (l limits) watch(mp metric.MeterProvider) error {
	var errs []error
	if l.permits != nil {
		errs = append(errs, telemetry.WatchPermits(mp, l.permits.Stats))
	}
	if l.rates != nil {
		errs = append(errs, telemetry.WatchRates(mp, l.rates.Refused))
	}
	if l.waitlist != nil {
		errs = append(errs, telemetry.WatchWaitlist(mp, l.waitlist.Waiting))
	}
	return errors.Join(errs...)
}

// instances returns how many instances share the limits.
func (l limits) instances() int {
	if l.permits == nil {
		return 1
	}
	return max(1, l.permits.Stats().Instances)
}

// restocked notifies orders that wait for units of skus.
func (l limits) restocked(skus ...string) {
	if l.waitlist != nil {
		l.waitlist.Notify(skus...)
	}
}

// configure gives the API the limits.
func (l limits) configure(api *httpapi.Config) {
	if l.permits != nil {
		api.Permits = l.permits.Stats
	}
	if l.rates != nil {
		api.Rates = l.rates
	}
	if l.waitlist != nil {
		api.Waiting = l.waitlist.Waiting
	}
}

// run runs what the limits do in the background, until ctx ends.
func (l limits) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if l.permits != nil {
		g.Go(func() error { return l.permits.Run(ctx) })
	}
	if l.waitlist != nil {
		g.Go(func() error { return l.waitlist.Run(ctx) })
	}
	return g.Wait()
}

// openPermits returns what bounds how many orders are placed at the same time, or nil.
// Without Redis it is a bound for this instance alone.
func openPermits(ctx context.Context, c Config, l locks, log *slog.Logger) (*permits.Limiter, error) {
	if c.Permits == 0 {
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	if l.rdb == nil {
		return permits.New(nil, permits.Config{Permits: c.Permits})
	}
	store, err := redispermits.New(l.rdb, permitsKey)
	if err != nil {
		return nil, err
	}
	limiter, err := permits.New(store, permits.Config{
		Permits: c.Permits, TTL: permitsTTL, Timeout: permitsTimeout,
		OnDegraded: func(ctx context.Context, alone bool) {
			if alone {
				log.WarnContext(ctx, "permits degraded: redis unavailable, this instance serves its equal share")
			} else {
				log.InfoContext(ctx, "permits recovered")
			}
		},
	})
	if err != nil {
		return nil, err
	}
	// The number of the instance that was started last counts for all. An instance that Redis refuses a lease does not start: it would
	// not know its share.
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := limiter.Start(ctx)
		if err == nil {
			return limiter, nil
		}
		_, refused := errors.AsType[redis.Error](err)
		if refused && !unreachable(err) || !backoff.Sleep(ctx, awaitPause) { // Redis has answered before, and is only slow
			return nil, fmt.Errorf("%w: %s", err, whyNot(err))
		}
	}
}

// openWaitlist returns where orders wait for units, or nil without Redis.
func openWaitlist(l locks, closers *closers, log *slog.Logger) (*waitlist.Waitlist, error) {
	if l.rdb == nil {
		return nil, nil //nolint:nilnil // None is a choice of the user and no error.
	}
	queue, err := redislock.New(l.rdb, redislock.Config{TTL: leaseTTL}) // customers, and not instances, are in order
	if err != nil {
		return nil, err
	}
	closers.pushService("redis queue of the waitlist", queue.Close)
	cond, err := redislock.NewCond(queue, "units")
	if err != nil {
		return nil, err
	}
	closers.pushService("redis waitlist", cond.Close)
	return waitlist.New(waitlist.Config{
		Lock: queue, Cond: cond,
		OnError: func(key string, err error) {
			log.Warn("wait queue operation failed", slog.String("key", key), slog.String("error", err.Error()))
		},
	})
}
