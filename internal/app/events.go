package app

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/events/redislog"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// eventLog is what this instance publishes, and what it has of the events of all. Without Redis these are its own.
type eventLog struct {
	*events.Publisher

	feed *events.Feed
}

var _ order.Publisher = (*eventLog)(nil)

func openEvents(c Config, rdb redis.UniversalClient, levels func(context.Context, []string) ([]stock.Level, error), log *slog.Logger) (*eventLog, error) {
	warn := func(err error) { log.Warn("event log operation failed", slog.String("error", err.Error())) }
	shared, err := openLog(rdb)
	if err != nil {
		return nil, err
	}
	feed, err := events.NewFeed(shared, events.FeedConfig{OnError: warn})
	if err != nil {
		return nil, err
	}
	return &eventLog{feed: feed, Publisher: events.NewPublisher(shared, events.PublisherConfig{
		Instance: c.Instance, OnError: warn,
		Levels: func(ctx context.Context, skus []string) ([]events.Stock, error) {
			all, err := levels(ctx, skus)
			stocks := make([]events.Stock, len(all))
			for i, l := range all {
				stocks[i] = events.Stock{
					SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Reserved: l.Reserved, Available: l.Available(), Version: l.Version,
				}
			}
			return stocks, err
		},
	})}, nil
}

func openLog(rdb redis.UniversalClient) (events.Log, error) {
	if rdb == nil {
		return memlog.New(), nil
	}
	return redislog.New(rdb)
}

// run publishes and reads events until ctx ends, and then publishes the rest.
func (n *eventLog) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.feed.Run(ctx) })
	g.Go(func() error { return n.Run(ctx) })
	return g.Wait()
}

// Changed implements [order.Publisher].
func (n *eventLog) Changed(o order.Order) {
	e := events.Order{
		ID: o.ID, CustomerID: o.CustomerID, Status: string(o.Status), Reason: string(o.Reason), ExpiresAt: o.ExpiresAt,
		Items: make([]events.Item, len(o.Items)),
	}
	for i, it := range o.Items {
		e.Items[i] = events.Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	n.Order(e)
}

// Fenced implements [order.Publisher].
func (n *eventLog) Fenced(strategy string, e *stock.FencedError) {
	n.Refused(e.Refused.SKU, strategy, e.Refused.Fence.Token, e.Accepted.Token)
}

// timerEvents is an observer of timers that reports what became of them.
type timerEvents struct {
	timeout.Observer

	events *eventLog
}

// Settled implements [timeout.Observer].
func (t timerEvents) Settled(kind string, v timeout.Verdict, n int) {
	t.Observer.Settled(kind, v, n)
	t.events.Timers(kind, string(v), n)
}
