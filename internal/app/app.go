package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
)

// Run runs one instance until ctx ends, and then drains it. When it serves, it prints one line to stdout. It logs
// to stderr. A ctx that ends during the start is no error: the caller wanted the instance to stop, and it has.
func Run(ctx context.Context, c Config, stdout, stderr io.Writer) (err error) {
	i := &instance{c: c, stderr: stderr}
	i.openLog()
	defer func() { i.closers.close(ctx, i.log) }()
	canListen := func(ctx context.Context) error { return canListen(ctx, c) }
	for _, open := range []func(context.Context) error{canListen, i.openTelemetry, i.openStores, i.openDomain} {
		switch err := open(ctx); {
		case err != nil && ctx.Err() != nil: // what the start was doing ended with ctx, or failed at the same time
			i.log.WarnContext(ctx, "stopped before it served", slog.String("cause", context.Cause(ctx).Error()), slog.String("error", err.Error()))
			return nil
		case err != nil:
			return err
		}
	}
	return i.serve(ctx, stdout)
}

// instance is one that is being put together, in the order of its fields.
type instance struct {
	c       Config
	stderr  io.Writer
	closers closers

	level    *slog.LevelVar
	log      *slog.Logger
	tel      *telemetry.Telemetry
	observer *telemetry.Observer

	store     *sqlstore.Store
	clients   redisClients
	locks     locks
	lockers   stock.Lockers
	breakers  breakers
	published *eventLog
	node      *node
	timers    *timeout.Queue

	strategies *stock.Strategies
	limits     limits
	orders     *order.Service
	stocks     *stock.Service
	deliveries func(context.Context) error
	audits     func(context.Context) error
}

func (i *instance) openStores(ctx context.Context) (err error) {
	redis.SetLogger(silent{})
	if i.store, err = openStore(ctx, i.c, i.tel, i.log); err != nil {
		return err
	}
	i.closers.pushClient("database", i.store.Close)
	warnOfHosts(ctx, i.c.Database, i.log)
	if i.store.Galera() {
		i.log.InfoContext(ctx, "the database is a node of a Galera cluster; statements share no packet, and reads and transactions wait for what other nodes have committed",
			slog.String("database", i.store.Address()))
	}
	if i.clients, err = openRedisClients(i.c, i.tel, &i.closers); err != nil {
		return err
	}
	if i.locks, err = openRedis(ctx, i.c, i.clients.locks, i.tel, &i.closers, i.log); err != nil {
		return err
	}
	session, err := openZooKeeper(ctx, i.c, sessionTimeout, &i.closers)
	if err != nil {
		return err
	}
	raw, err := openLockers(ctx, i.c, i.store, i.locks, i.clients.units, i.tel, &i.closers, i.log)
	if err != nil {
		return err
	}
	i.lockers, i.breakers = withBreakers(raw, i.c, i.log)
	i.breakers.probe(ctx)
	if i.published, err = openEvents(i.c, i.clients.events, i.store.LevelsOf, i.log); err != nil {
		return err
	}
	if i.node, err = openNode(ctx, i.c, session, i.store, i.published, i.log); err != nil {
		return err
	}
	i.c = i.node.withClusterSettings(i.c)
	i.timers, err = openTimers(ctx, i.c, i.clients.timers, i.store, i.published, i.tel, i.log)
	if err != nil {
		return err
	}
	i.store = i.store.WithTimers(i.timers)
	i.log.InfoContext(ctx, "stores are open", slog.String("database", i.store.Address()), slog.String("redis", redacted(i.c.Redis)))
	return nil
}

func (i *instance) openDomain(ctx context.Context) (err error) {
	i.strategies = stock.NewStrategies(i.lockers)
	if i.limits, err = openLimits(ctx, i.c, i.locks, &i.closers, i.log); err != nil {
		return err
	}
	i.orders = order.NewService(i.store, i.strategies, order.Config{
		TTL: i.c.OrderTTL, MaxOpen: i.c.MaxOpenOrders, Permits: i.limits.permits, Waitlist: i.limits.waitlist, Stopping: ctx,
		Tracer: i.tel.TracerProvider, Observer: i.observer, Publisher: i.published,
	})
	i.closers.push("orders", i.orders.Wait)
	if err := handleTimers(i.timers, i.orders, i.tel); err != nil {
		return err
	}
	if i.deliveries, err = openWebhook(i.c, i.store, i.timers, i.node.lead, i.tel, &i.closers, i.log); err != nil {
		return err
	}
	i.stocks = stock.NewService(i.store, i.strategies, func(skus ...string) {
		i.limits.restocked(skus...)
		i.published.Stock(skus...)
	})
	meters := i.tel.MeterProvider
	audit := func(ctx context.Context) ([]stock.Audit, error) { return i.stocks.AuditRecent(ctx, "") }
	i.audits, err = telemetry.WatchOversold(meters, audit)
	return errors.Join(err, i.limits.watch(meters), i.breakers.watch(meters), telemetry.WatchCluster(meters, i.node.lead.leads, i.node.size), telemetry.WatchAdaptiveLimit(meters, i.orders.Usable),
		telemetry.WatchEvents(meters, i.published.Stats, i.published.feed.Stats))
}

func (i *instance) serve(ctx context.Context, stdout io.Writer) (err error) {
	api := httpapi.Config{
		Orders: i.orders, Stock: i.stocks, Strategies: i.strategies, Timers: i.timers, Instance: i.c.Instance, Drain: new(atomic.Bool), Logger: i.log,
		// Not the lock services: without one its strategies are refused, and an instance that
		// reported itself unready would make the other SKUs unavailable as well.
		Ready:          func(ctx context.Context) error { return ready(ctx, i.store) },
		LocalOnly:      i.c.Auth == AuthNone && IsLoopback(i.c.Listen),
		Metrics:        i.tel.Metrics,
		TracerProvider: i.tel.TracerProvider, MeterProvider: i.tel.MeterProvider, Propagator: i.tel.Propagator,
		Cluster: i.node, Events: i.published.feed,
	}
	if i.tel.SpansOf != nil {
		api.Trace = i.trace
	}
	i.limits.configure(&api)
	var watchKeys func(context.Context) error
	if api.Identity, watchKeys, err = openIdentity(ctx, i.c, i.clients.events, i.store, i.log); err != nil {
		return err
	}
	address, front, sides, err := listen(ctx, stdout, i.c, api, i.published.feed.Close, &i.closers)
	if err != nil {
		return err
	}
	follow := reloadable{
		permits: i.limits.resize, permitted: i.limits.permitted, orderTTL: i.orders.SetTTL, pace: i.timers.SetPace, logLevel: i.level,
	}
	return runAll(ctx, front, i.published.run, append(sides,
		i.timers.Run, i.breakers.run, i.limits.run, i.node.run(address, follow),
		purgeIdempotencyKeys(i.store, i.c.KeyRetention, i.node.lead, i.log),
		purgeOrders(i.store, i.c.Retention, purgeEvery, i.node.lead, i.log), shortenWaits(i.store, i.orders.TTL, i.node.lead, i.log), watchKeys, i.deliveries, i.audits)...)
}
