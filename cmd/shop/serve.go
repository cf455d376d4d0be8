package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/demo"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

const (
	startTimeout = 10 * time.Second // for each store to answer at the start

	// drainWait is how long /readyz says no before connections are refused: two
	// questions of a balancer that asks once a second.
	drainWait = 2 * time.Second

	// stopTimeout bounds everything after that. It is longer than a request may
	// take, so that none is cut off.
	stopTimeout = 12 * time.Second

	// leaseTTL is how long a SKU is blocked by an instance that died while it
	// held the lease: well within the time of a request that waits for it.
	leaseTTL = 5 * time.Second
)

// serve runs one instance until ctx ends, and then drains it.
func serve(ctx context.Context, p process, args []string) (err error) {
	c, err := parseServe(p, args)
	if err != nil {
		return err
	}
	if c.exitOnStdin {
		ctx = untilEOF(ctx, p.stdin)
	}
	var closers closers
	defer func() { err = errors.Join(err, closers.close(ctx)) }()

	// Telemetry.
	log := telemetry.NewLogger(p.stderr, c.logLevel).With(slog.String("instance", c.instance))
	tel, err := telemetry.Setup(ctx, telemetry.Config{Instance: c.instance, Logger: log})
	if err != nil {
		return err
	}
	closers.push(tel.Shutdown)
	observer, err := telemetry.NewObserver(ctx, tel.MeterProvider)
	if err != nil {
		return err
	}

	// Stores.
	store, err := openStore(ctx, c, tel)
	if err != nil {
		return err
	}
	closers.push(func(context.Context) error { return store.Close() })
	locks, err := openRedis(ctx, c, tel, &closers, log)
	if err != nil {
		return err
	}

	// Domain.
	strategies := stock.NewStrategies(locks.locker)
	orders := order.NewService(store, strategies, order.Config{TTL: c.orderTTL, Tracer: tel.TracerProvider, Observer: observer})
	stocks := stock.NewService(store, strategies)
	err = telemetry.WatchOversold(tel.MeterProvider, func(ctx context.Context) ([]stock.Audit, error) { return stocks.Audit(ctx, "") },
		telemetry.OversoldConfig{})
	if err != nil {
		return err
	}

	// HTTP.
	drain := new(httpapi.Drain)
	handler, err := httpapi.New(httpapi.Config{
		Orders: orders, Stock: stocks, Instance: c.instance, Drain: drain, Logger: log,
		// Not Redis: without it some strategies are refused, and an instance that
		// called itself unready would take the others away as well.
		Ready:          store.Ping,
		Metrics:        tel.Metrics,
		TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider, Propagator: tel.Propagator,
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	log.InfoContext(ctx, "serving", slog.String("address", listener.Addr().String()),
		slog.String("database", store.Address()), slog.Bool("redis", c.redis != ""))
	fmt.Fprintf(p.stdout, "shop %s %shttp://%s\n", c.instance, demo.Listening, listener.Addr())
	return serveHTTP(ctx, httpapi.NewServer(handler, log), listener, drain, log)
}

// serveHTTP serves until ctx ends. Then it lets balancers notice, lets requests
// finish, and cuts off those that do not.
func serveHTTP(ctx context.Context, server *http.Server, listener net.Listener, drain *httpapi.Drain, log *slog.Logger) error {
	requests, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server.BaseContext = func(net.Listener) context.Context { return requests }
	var running sync.WaitGroup
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		next.ServeHTTP(w, r)
	})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		log.InfoContext(ctx, "draining", slog.String("cause", context.Cause(ctx).Error()))
		drain.Start()
		time.Sleep(drainWait)
		stop, cancel := context.WithTimeout(requests, stopTimeout)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			cut()
			err = errors.Join(fmt.Errorf("shut down: %w", err), server.Close())
			running.Wait() // they release their leases on their way out, which is bounded
			return err
		}
		return nil
	})
	return g.Wait()
}

// openStore opens the database and brings its schema up to date.
func openStore(ctx context.Context, c serveConfig, tel *telemetry.Telemetry) (*sqlstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	store, err := sqlstore.Open(ctx, sqlstore.Config{
		URL: c.database, Instance: c.instance, Tracer: tel.TracerProvider,
	})
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// locks is what an instance has of Redis; without --redis it has nothing.
type locks struct {
	rdb    redis.UniversalClient
	locker dlock.Locker
}

// ping asks Redis whether it is there.
func (l locks) ping(ctx context.Context) error {
	if l.rdb == nil {
		return nil
	}
	return l.rdb.Ping(ctx).Err()
}

// openRedis connects the lock service. It refuses a Redis that may evict a lock
// to make room.
func openRedis(ctx context.Context, c serveConfig, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (locks, error) {
	if c.redis == "" {
		return locks{}, nil
	}
	redis.SetLogger(silent{})
	rdb, err := redislock.NewClient(c.redis)
	if err != nil {
		return locks{}, usageError{fmt.Errorf("--redis: %w", err)}
	}
	closers.push(func(context.Context) error { return rdb.Close() })
	if err := telemetry.InstrumentRedis(rdb, tel); err != nil {
		return locks{}, err
	}
	l := locks{rdb: rdb}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := l.ping(ctx); err != nil {
		return locks{}, fmt.Errorf("open redis %s: %w", redacted(c.redis), err)
	}
	if policy := rdb.ConfigGet(ctx, "maxmemory-policy").Val()["maxmemory-policy"]; policy != "" && policy != "noeviction" {
		return locks{}, fmt.Errorf("open redis %s: maxmemory-policy is %s and may evict locks; set it to noeviction", redacted(c.redis), policy)
	}
	locker, err := redislock.New(rdb, redislock.Config{TTL: leaseTTL})
	if err != nil {
		return locks{}, err
	}
	closers.push(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := locker.Close(ctx); err != nil { // Redis is away: the TTL gives back what it may have granted
			log.WarnContext(ctx, "locks are left to their TTL", slog.String("error", err.Error()))
		}
		return nil
	})
	l.locker, err = otellock.New(locker, otellock.Config{Backend: "redis", TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider})
	return l, err
}

// silent keeps go-redis from printing what its errors say as well.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// closers are what an instance has opened, in that order.
type closers []func(context.Context) error

func (c *closers) push(f func(context.Context) error) { *c = append(*c, f) }

// close closes everything in reverse order under one deadline, which the end of
// ctx does not shorten.
func (c *closers) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var errs []error
	for _, closer := range slices.Backward(*c) {
		errs = append(errs, closer(ctx))
	}
	return errors.Join(errs...)
}

// untilEOF returns a context that ends with ctx, and when r ends: whoever holds
// the other end of r has gone. Its goroutine lasts as long as the process.
func untilEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, err := io.Copy(io.Discard, r)
		cancel(errors.Join(errors.New("standard input has ended"), err))
	}()
	return ctx
}
