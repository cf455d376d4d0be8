package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/fleet"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
)

const (
	// startTimeout is for each store to answer at the start that an instance cannot do without. A machine that
	// has just begun is busy.
	startTimeout = 30 * time.Second

	// lookTimeout is for each lock service to answer, at the start and when it may be away.
	lookTimeout = 10 * time.Second

	// migrateTimeout is for the schema to be brought up to date, for which other instances may have to be waited for.
	migrateTimeout = 2 * time.Minute

	// drainWait is how long /readyz says no before connections are refused: two
	// questions of a balancer that asks once a second.
	drainWait = 2 * time.Second

	// stopTimeout is how long requests may go on after that. It is longer than one takes,
	// unless its client prefers to wait for longer.
	stopTimeout = 12 * time.Second

	// cutTimeout is for those to be told that the instance stops.
	cutTimeout = 2 * time.Second

	// expireBatch is how many orders expire in one transaction. Larger ones save
	// little more, and keep the stock rows from buyers for longer.
	expireBatch = 200

	// placeBatch is how many queued orders are tried at a time by an instance.
	placeBatch = 16

	// placePoll is how often they are looked for without having been told: there are
	// few, and each look costs Redis a script.
	placePoll = time.Second

	// garbage is how much is collected at once, in percent of what is in use: that is small, some
	// 20 MB, and with the usual 100 a tenth of the processor time of an order went into
	// collecting. GOGC and GOMEMLIMIT count as usual.
	garbage = 400
)

// serve runs one instance until ctx ends, and then drains it.
func serve(ctx context.Context, p process, args []string) (err error) {
	c, err := parseServe(p, args)
	if err != nil {
		return err
	}
	if err := canListen(ctx, c); err != nil {
		return err
	}
	if c.exitOnStdin {
		ctx = untilEOF(ctx, p.stdin)
	}
	if p.getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	var closers closers
	defer func() { err = errors.Join(err, closers.close(ctx)) }()

	// Telemetry.
	level := new(slog.LevelVar)
	level.Set(c.logLevel)
	newLogger := telemetry.NewLogger
	if isTerminal(p.stderr) {
		newLogger = telemetry.NewTextLogger
	}
	log := newLogger(p.stderr, level).With(slog.String("instance", c.instance))
	tel, err := telemetry.Setup(ctx, telemetry.Config{Version: version(), Instance: c.instance, Logger: log})
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
	locks, err := openRedis(ctx, c, tel, &closers, log)
	if err != nil {
		return err
	}
	session, err := openZooKeeper(ctx, c, sessionTimeout, &closers, log)
	if err != nil {
		return err
	}
	lockers, err := openLockers(ctx, c, store, locks, tel, &closers, log)
	if err != nil {
		return err
	}
	watched, services := watched(lockers, c, log)
	services.look(ctx)
	told, err := openNews(c, store.LevelsOf, &closers, log)
	if err != nil {
		return err
	}
	node, err := openNode(ctx, c, session, locks, lockers, told, log)
	if err != nil {
		return err
	}
	c = node.begun(c)
	timers, err := openTimers(ctx, c, store, node.lead, told, tel, &closers, log)
	if err != nil {
		return err
	}
	store = store.WithTimers(timers)
	log.InfoContext(ctx, "stores are open", slog.String("database", store.Address()), slog.String("redis", redacted(c.redis)))

	// Domain.
	strategies := stock.NewStrategies(watched)
	limits, err := openLimits(ctx, c, locks, &closers, log)
	if err != nil {
		return err
	}
	orders := order.NewService(store, strategies, order.Config{
		TTL: c.orderTTL, MaxOpen: c.maxOpen, Permits: limits.permits, Waitlist: limits.waitlist, Stopping: ctx,
		Tracer: tel.TracerProvider, Observer: observer, Publisher: told,
	})
	closers.push(orders.Wait)
	if err := handleTimers(timers, orders, tel); err != nil {
		return err
	}
	stocks := stock.NewService(store, strategies, func(skus ...string) {
		limits.restocked(skus...)
		told.Stock(skus...)
	})
	audit := func(ctx context.Context) ([]stock.Audit, error) { return stocks.Audit(ctx, "") }
	if err := errors.Join(limits.watch(tel.MeterProvider), telemetry.WatchUsable(tel.MeterProvider, orders.Usable), telemetry.WatchEvents(tel.MeterProvider, told.bus.Stats, told.feed.Stats)); err != nil {
		return err
	}
	audits, err := telemetry.WatchOversold(tel.MeterProvider, audit, telemetry.OversoldConfig{})
	if err != nil {
		return err
	}

	// HTTP.
	api := httpapi.Config{
		Orders: orders, Stock: stocks, Strategies: strategies, Timers: timers, Instance: c.instance, Drain: new(httpapi.Drain), Logger: log,
		// Not the lock services: without one its strategies are refused, and an instance that
		// called itself unready would take the others away as well.
		Ready:          store.Ping,
		LocalOnly:      c.auth == authNone && isLoopback(c.listen),
		Metrics:        tel.Metrics,
		TracerProvider: tel.TracerProvider, MeterProvider: tel.MeterProvider, Propagator: tel.Propagator,
	}
	limits.tell(&api)
	var heedKeys func(context.Context) error
	if api.Identity, heedKeys, err = openIdentity(ctx, c, store, told.bus, log); err != nil {
		return err
	}
	api.Cluster, api.Events = node, told.feed
	address, front, admin, err := listen(ctx, p, c, api, told.feed.Close, &closers)
	if err != nil {
		return err
	}
	follow := live{permits: limits.resize, permitted: limits.permitted, orderTTL: orders.SetTTL, pace: timers.SetPace, logLevel: level}
	return runAll(ctx, front, told.live, timers.Run, services.run, limits.run, node.run(address, follow), forget(store, node.lead, c.lane, log), heedKeys, admin.run, audits)
}

// canListen listens on the addresses of c for a moment and closes them. A bad address so ends the start before a store is opened,
// which may create a file. A listener that stayed open would keep clients waiting for the stores.
func canListen(ctx context.Context, c serveConfig) error {
	listener, err := listenOn(ctx, "listen", c.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // after the second one has been tried, which must not have the same address
	if c.adminListen == "" {
		return nil
	}
	second, err := listenOn(ctx, "admin-listen", c.adminListen)
	if err != nil {
		return err
	}
	return second.Close()
}

// listenOn listens on the address that a flag names.
func listenOn(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w; port 0 takes a free one", flag, address, err)
	}
	return listener, nil
}

// listen opens the listeners, says where they are, and returns what serves on them, and where others reach the instance.
func listen(ctx context.Context, p process, c serveConfig, api httpapi.Config, endStreams func(), closers *closers) (address string, front func(context.Context) error, back *admin, err error) {
	handler, err := httpapi.New(api)
	if err != nil {
		return "", nil, nil, err
	}
	if back, err = openAdmin(ctx, c, api, closers, api.Logger); err != nil {
		return "", nil, nil, err
	}
	listener, err := listenOn(ctx, "listen", c.listen)
	if err != nil {
		return "", nil, nil, err
	}
	api.Logger.InfoContext(ctx, "serving", slog.String("address", listener.Addr().String()),
		slog.Bool("canary", c.canary),
		slog.String("auth", c.auth), slog.Int("permits", c.permits), slog.String("admin", back.address()))
	fmt.Fprintf(p.stdout, "shop %s %shttp://%s\n", c.instance, fleet.Listening, listener.Addr())
	front = func(ctx context.Context) error {
		server := httpapi.NewServer(handler, api.Logger)
		server.RegisterOnShutdown(endStreams) // when balancers have noticed, so that clients come back elsewhere
		return serveHTTP(ctx, server, listener, api.Drain, api.Logger)
	}
	return advertised(c, listener.Addr()), front, back, nil
}

// handleTimers says who works off the timers of orders.
func handleTimers(timers *timeout.Queue, orders *order.Service, tel *telemetry.Telemetry) error {
	return errors.Join(
		timers.Handle(order.ExpireTimer, tel.TraceTimers(order.ExpireTimer, orders.Expire), timeout.Options{Batch: expireBatch}),
		timers.Handle(order.PlaceTimer, tel.TraceTimers(order.PlaceTimer, orders.PlaceQueued), timeout.Options{Batch: placeBatch, Poll: placePoll}),
	)
}

// runAll runs front until ctx ends or one of them fails. Those behind it go on until the
// front has answered its last request, and last, to whom they tell what they do, until they have ended.
func runAll(ctx context.Context, front, last func(context.Context) error, behind ...func(context.Context) error) error {
	g, serving := errgroup.WithContext(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	telling, end := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return last(telling) })
	var working sync.WaitGroup
	for _, run := range behind {
		working.Add(1)
		g.Go(func() error {
			defer working.Done()
			return run(background)
		})
	}
	g.Go(func() error {
		defer end()
		<-background.Done()
		working.Wait()
		return nil
	})
	g.Go(func() error {
		defer stop()
		return front(serving)
	})
	return g.Wait()
}

// serveHTTP serves until ctx ends. Then it lets balancers notice, lets requests
// finish, ends those that do not, and cuts off those that do not answer even then.
func serveHTTP(ctx context.Context, server *http.Server, listener net.Listener, drain *httpapi.Drain, log *slog.Logger) error {
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
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
		if shutDown(requests, server, stopTimeout) == nil {
			return nil
		}
		cut(order.ErrStopping)
		err := shutDown(context.WithoutCancel(requests), server, cutTimeout)
		if err != nil {
			err = errors.Join(fmt.Errorf("shut down: %w", err), server.Close())
		}
		running.Wait() // they release their leases on their way out, which is bounded
		return err
	})
	return g.Wait()
}

// shutDown refuses connections and waits for requests, so long at most.
func shutDown(ctx context.Context, server *http.Server, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return server.Shutdown(ctx)
}

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
