package app

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/events"
	"example.com/shop/internal/order"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// eventQueue is how many messages this instance may be behind with reading them.
const eventQueue = 8192

// eventBus is what this instance tells the others, and hears from them. Without Redis it hears
// itself.
type eventBus struct {
	*events.Publisher

	bus  broadcast.Bus
	feed *events.Feed
}

var _ order.Publisher = (*eventBus)(nil)

func openEvents(c Config, levels func(context.Context, []string) ([]stock.Level, error), closers *closers, log *slog.Logger) (*eventBus, error) {
	warn := func(err error) { log.Warn("events", slog.String("error", err.Error())) }
	bus, err := openBroadcast(c, closers, warn)
	if err != nil {
		return nil, err
	}
	feed, err := events.NewFeed(bus, events.FeedConfig{})
	if err != nil {
		return nil, err
	}
	return &eventBus{bus: bus, feed: feed, Publisher: events.NewPublisher(bus, events.PublisherConfig{
		Instance: c.Instance, OnError: warn,
		Levels: func(ctx context.Context, skus []string) ([]events.Stock, error) {
			all, err := levels(ctx, skus)
			told := make([]events.Stock, len(all))
			for i, l := range all {
				told[i] = events.Stock{
					SKU: l.SKU, Strategy: l.Strategy, OnHand: l.OnHand, Reserved: l.Reserved, Available: l.Available(), Version: l.Version,
				}
			}
			return told, err
		},
	})}, nil
}

func openBroadcast(c Config, closers *closers, warn func(error)) (broadcast.Bus, error) {
	if c.Redis == "" {
		return membus.New(nil, membus.Config{Instance: c.Instance, Queue: eventQueue})
	}
	rdb, err := redisclient.New(c.Redis) // its own, as the one for locks must never wait for a connection
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	closers.push(func(context.Context) error { return rdb.Close() })
	return redisbus.New(rdb, redisbus.Config{Instance: c.Instance, Channel: channelOf(rdb), Queue: eventQueue, OnError: warn})
}

// channelOf keeps shops on several databases of one server apart, as Redis does not.
func channelOf(rdb redis.UniversalClient) string {
	channel := "shop:events:{all}"
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		channel += ":" + strconv.Itoa(one.Options().DB)
	}
	return channel
}

// run publishes and receives until ctx ends. The bus lasts until the rest has been told.
func (n *eventBus) run(ctx context.Context) error {
	open, shut := context.WithCancel(context.WithoutCancel(ctx))
	defer shut()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return n.bus.Run(open) })
	g.Go(func() error { return n.feed.Run(ctx) })
	g.Go(func() error {
		defer shut()
		return n.Run(ctx)
	})
	return g.Wait()
}

// Changed implements [order.Publisher].
func (n *eventBus) Changed(o order.Order) {
	e := events.Order{
		ID: o.ID, CustomerID: o.CustomerID, Status: string(o.Status), Reason: string(o.Reason), ExpiresAt: o.ExpiresAt,
		Items: make([]events.Item, len(o.Items)),
	}
	for i, it := range o.Items {
		e.Items[i] = events.Item{SKU: it.SKU, Quantity: it.Quantity}
	}
	n.Order(e)
}

// Held implements [order.Publisher].
func (n *eventBus) Held(sku, strategy string, f dlock.Fence) { n.Lock(sku, strategy, f.Token) }

// timerEvents is an observer of timers that tells what became of them.
type timerEvents struct {
	timeout.Observer

	news *eventBus
}

// Settled implements [timeout.Observer].
func (t timerEvents) Settled(kind string, v timeout.Verdict, n int) {
	t.Observer.Settled(kind, v, n)
	t.news.Timers(kind, string(v), n)
}
