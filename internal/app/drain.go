package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/order"
)

const (
	// drainWait is how long /readyz says no before connections are refused: two
	// health checks of a balancer, once a second.
	drainWait = 2 * time.Second

	// stopTimeout is how long requests may continue after that. It is longer than one takes,
	// unless its client prefers to wait for longer.
	stopTimeout = 12 * time.Second

	// cutTimeout is for those to be notified that the instance stops.
	cutTimeout = 2 * time.Second
)

// runAll runs front until ctx ends or one of them fails. The others continue until front
// has answered its last request. last, which publishes their events, continues until they have ended.
func runAll(ctx context.Context, front, last func(context.Context) error, behind ...func(context.Context) error) error {
	g, serving := errgroup.WithContext(ctx)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	publishing, end := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return last(publishing) })
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
// finish, ends those that do not, and cuts off those that do not answer even then. That is no failure of the instance: a client
// that does not read its response may be the cause.
func serveHTTP(ctx context.Context, server *http.Server, listener net.Listener, drain *atomic.Bool, log *slog.Logger) error {
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
		drain.Store(true)
		time.Sleep(drainWait)
		if shutDown(requests, server, stopTimeout) == nil {
			return nil
		}
		cut(order.ErrStopping)
		if shutDown(context.WithoutCancel(requests), server, cutTimeout) != nil {
			log.WarnContext(ctx, "connections cut off; their requests had not ended in time")
			server.Close()
		}
		running.Wait() // they end their transactions, which is bounded
		return nil
	})
	return g.Wait()
}

// shutDown refuses connections and waits for requests, so long at most.
func shutDown(ctx context.Context, server *http.Server, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return server.Shutdown(ctx)
}
