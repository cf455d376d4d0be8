package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

// Run runs one instance until ctx ends, and then drains it. When it serves, it prints one line to stdout. It logs
// to stderr.
func Run(ctx context.Context, c Config, stdout, stderr io.Writer) (err error) {
	if err := canListen(ctx, c); err != nil {
		return err
	}
	var closers closers
	defer func() { err = errors.Join(err, closers.close(ctx)) }()

	// Telemetry.
	level := new(slog.LevelVar)
	level.Set(c.LogLevel)
	newLogger := telemetry.NewLogger
	if c.TextLogs {
		newLogger = telemetry.NewTextLogger
	}
	log := newLogger(stderr, level).With(slog.String("instance", c.Instance))
	tel, err := telemetry.Setup(ctx, telemetry.Config{Version: c.Version, Instance: c.Instance, Logger: log})
	if err != nil {
		return err
	}
	closers.push(tel.Shutdown)
	observer, err := telemetry.NewObserver(ctx, tel.MeterProvider)
	if err != nil {
		return err
	}

	// Stores.
	redis.SetLogger(silent{})
	store, err := openStore(ctx, c, tel, log)
	if err != nil {
		return err
	}
	closers.push(func(context.Context) error { return store.Close() })
	clients, err := openRedisClients(c, tel, &closers)
	if err != nil {
		return err
	}
	locks, err := openRedis(ctx, c, clients.locks, tel, &closers, log)
	if err != nil {
		return err
	}
	session, err := openZooKeeper(ctx, c, sessionTimeout, &closers, log)
	if err != nil {
		return err
	}
	lockers, err := openLockers(ctx, c, store, locks, clients.units, tel, &closers, log)
	if err != nil {
		return err
	}
	guarded, breakers := withBreakers(lockers, c, log)
	breakers.probe(ctx)
	published, err := openEvents(c, clients.events, store.LevelsOf, log)
	if err != nil {
		return err
	}
	node, err := openNode(ctx, c, session, locks, lockers, published, log)
	if err != nil {
		return err
	}
	c = node.withClusterSettings(c)
	timers, err := openTimers(ctx, c, clients.timers, store, node.lead, published, tel, log)
	if err != nil {
		return err
	}
	store = store.WithTimers(timers)
	log.InfoContext(ctx, "stores are open", slog.String("database", store.Address()), slog.String("redis", redacted(c.Redis)))

	// Domain.
	strategies := stock.NewStrategies(guarded)
	limits, err := openLimits(ctx, c, locks, &closers, log)
	if err != nil {
		return err
	}
	placing := order.Config{
		TTL: c.OrderTTL, MaxOpen: c.MaxOpenOrders, Stopping: ctx,
		Tracer: tel.TracerProvider, Observer: observer, Publisher: published,
	}
	limits.apply(&placing)
	orders := order.NewService(store, strategies, placing)
	closers.push(orders.Wait)
	if err := handleTimers(timers, orders, tel); err != nil {
		return err
	}
	stocks := stock.NewService(store, strategies, func(skus ...string) {
		limits.restocked(skus...)
		published.Stock(skus...)
	})
	audit := func(ctx context.Context) ([]stock.Audit, error) { return stocks.Audit(ctx, "") }
	if err := errors.Join(limits.watch(tel.MeterProvider), telemetry.WatchAdaptiveLimit(tel.MeterProvider, orders.Usable), telemetry.WatchEvents(tel.MeterProvider, published.Stats, published.feed.Stats)); err != nil {
		return err
	}
	audits, err := telemetry.WatchOversold(tel.MeterProvider, audit, telemetry.OversoldConfig{})
	if err != nil {
		return err
	}

	// HTTP.
	api := httpapi.Config{
		Orders: orders, Stock: stocks, Strategies: strategies, Timers: timers, Instance: c.Instance, Drain: new(httpapi.Drain), Logger: log,
		// Not the lock services: without one its strategies are refused, and an instance that
		// reported itself unready would make the other SKUs unavailable as well.
		Ready:          store.Ping,
		LocalOnly:      c.Auth == AuthNone && IsLoopback(c.Listen),
		Metrics:        tel.Metrics,
		TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider, Propagator: tel.Propagator,
	}
	limits.configure(&api)
	var watchKeys func(context.Context) error
	if api.Identity, watchKeys, err = openIdentity(ctx, c, clients.events, store, log); err != nil {
		return err
	}
	api.Cluster, api.Events = node, published.feed
	address, front, admin, err := listen(ctx, stdout, c, api, published.feed.Close, &closers)
	if err != nil {
		return err
	}
	follow := reloadable{permits: limits.resize, permitted: limits.permitted, orderTTL: orders.SetTTL, pace: timers.SetPace, logLevel: level}
	return runAll(ctx, front, published.run, timers.Run, breakers.run, limits.run, node.run(address, follow), purgeIdempotencyKeys(store, node.lead, c.Partition, log), watchKeys, admin.run, audits)
}
