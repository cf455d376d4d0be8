package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/redisindex"
)

// serve is one instance that sells under the locks of a library. It takes those flags
// of shop serve that the lab gives.
func serve(ctx context.Context, args []string) (err error) {
	f := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := f.String("listen", "127.0.0.1:0", "")
	instance := f.String("instance", "peer", "")
	database := f.String("database", "", "")
	address := f.String("redis", "", "")
	name := f.String("library", "", "")
	orderTTL := f.Duration("order-ttl", time.Hour, "")
	f.Int("permits", 0, "not used")
	f.Bool("exit-on-stdin-eof", false, "always")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen := slices.IndexFunc(libraries, func(l library) bool { return l.name == *name })
	if chosen < 0 {
		return fmt.Errorf("no library %q", *name)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is what counts
		stop()
	}()
	store, err := sqlstore.Open(ctx, sqlstore.Config{URL: *database, Instance: *instance})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	options, err := redis.ParseURL(*address)
	if err != nil {
		return err
	}
	options.ContextTimeoutEnabled, options.MaxRetries = true, -1
	rdb := redis.NewClient(options)
	defer rdb.Close()
	timers, err := openTimers(store, rdb, *instance)
	if err != nil {
		return err
	}
	store = store.WithTimers(timers)
	strategies := stock.NewStrategies(stock.Lockers{Redis: locker{libraries[chosen].open(rdb)}})
	orders := order.NewService(store, strategies, order.Config{TTL: *orderTTL})
	if err := timers.Handle(order.ExpireTimer, orders.Expire, timeout.Options{}); err != nil {
		return err
	}
	handler, err := httpapi.New(httpapi.Config{
		Orders: orders, Stock: stock.NewService(store, strategies, nil), Strategies: strategies, Instance: *instance,
	})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, *instance, fleet.Listening+"http://"+listener.Addr().String())
	return runInstance(ctx, timers, httpapi.NewServer(handler, slog.New(slog.DiscardHandler)), listener)
}

// openTimers returns the timers of a database, which have their index in a Redis.
func openTimers(store *sqlstore.Store, rdb *redis.Client, instance string) (*timeout.Queue, error) {
	index, err := redisindex.New(rdb, redisindex.Config{})
	if err != nil {
		return nil, err
	}
	kept, err := store.Timers()
	if err != nil {
		return nil, err
	}
	return timeout.New(kept, index, timeout.Config{Instance: instance})
}

// runInstance fires timers and answers requests until ctx ends.
func runInstance(ctx context.Context, timers *timeout.Queue, server *http.Server, listener net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return timers.Run(ctx) })
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return g.Wait()
}
