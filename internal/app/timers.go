package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
	"example.com/shop/internal/timeout/redisindex"
)

const (
	// timersDrain is how long orders that are expiring may take to finish when the
	// instance stops.
	timersDrain = 5 * time.Second

	// expireBatch is how many orders expire in one transaction. Larger ones save
	// little more, and keep the stock rows from buyers for longer.
	expireBatch = 200

	// placeBatch is how many queued orders are tried at a time by an instance.
	placeBatch = 16

	// placePoll is the interval of fallback polls for queued orders: there are
	// few, and each poll costs Redis a script.
	placePoll = time.Second
)

// openTimers returns the queue that ends the wait for payments. Its timers are in the database. Redis, if configured,
// wakes the instance that fires them; without Redis each instance wakes itself.
func openTimers(ctx context.Context, c Config, rdb redis.UniversalClient, store *sqlstore.Store, published *eventLog, tel *telemetry.Telemetry, log *slog.Logger) (*timeout.Queue, error) {
	timers, err := store.Timers()
	if err != nil {
		return nil, err
	}
	var index timeout.Index = memindex.New(memindex.Config{})
	if rdb != nil {
		if index, err = redisindex.New(rdb, redisindex.Config{}); err != nil {
			return nil, err
		}
	}
	observer, err := telemetry.NewTimers(ctx, tel.MeterProvider, telemetry.TimersConfig{Canary: c.Canary, Logger: log})
	if err != nil {
		return nil, err
	}
	queue, err := timeout.New(timers, index, timeout.Config{
		Instance:  c.Instance,
		Canary:    c.Canary,
		Partition: c.Partition,
		Drain:     timersDrain,
		Observer:  timerEvents{observer, published},
		Trace:     tel.Traceparent,
	})
	if err != nil {
		return nil, err
	}
	return queue, telemetry.WatchTimers(tel.MeterProvider, queue.Stats, telemetry.WatchTimersConfig{Canary: c.Canary})
}

// handleTimers registers the handlers of the timers of orders.
func handleTimers(timers *timeout.Queue, orders *order.Service, tel *telemetry.Telemetry) error {
	return errors.Join(
		timers.Handle(order.ExpireTimer, tel.TraceTimers(order.ExpireTimer, orders.Expire), timeout.Options{Batch: expireBatch}),
		timers.Handle(order.PlaceTimer, tel.TraceTimers(order.PlaceTimer, orders.PlaceQueued), timeout.Options{Batch: placeBatch, Poll: placePoll}),
	)
}
