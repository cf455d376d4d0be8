package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strconv"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/events"
	"example.com/shop/internal/order"
	"example.com/shop/internal/redisclient"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// newsQueue is how many messages this instance may be behind with reading them.
const newsQueue = 8192

// news is what this instance tells the others, and hears from them. Without Redis it hears
// itself.
type news struct {
	*events.Publisher

	bus  broadcast.Bus
	feed *events.Feed
}

var _ order.Publisher = (*news)(nil)

func openNews(c serveConfig, levels func(context.Context, []string) ([]stock.Level, error), closers *closers, log *slog.Logger) (*news, error) {
	warn := func(err error) { log.Warn("events", slog.String("error", err.Error())) }
	bus, err := openBus(c, closers, warn)
	if err != nil {
		return nil, err
	}
	feed, err := events.NewFeed(bus, events.FeedConfig{})
	if err != nil {
		return nil, err
	}
	return &news{bus: bus, feed: feed, Publisher: events.NewPublisher(bus, events.PublisherConfig{
		Instance: c.instance, OnError: warn,
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

func openBus(c serveConfig, closers *closers, warn func(error)) (broadcast.Bus, error) {
	if c.redis == "" {
		return membus.New(nil, membus.Config{Instance: c.instance, Queue: newsQueue})
	}
	rdb, err := redisclient.New(c.redis) // its own, as the one for locks must never wait for a connection
	if err != nil {
		return nil, usageError{fmt.Errorf("--redis: %w", err)}
	}
	closers.push(func(context.Context) error { return rdb.Close() })
	return redisbus.New(rdb, redisbus.Config{Instance: c.instance, Channel: channelOf(rdb), Queue: newsQueue, OnError: warn})
}

// channelOf keeps shops on several databases of one server apart, as Redis does not.
func channelOf(rdb redis.UniversalClient) string {
	channel := "shop:events:{all}"
	if one, ok := rdb.(*redis.Client); ok && one.Options().DB != 0 {
		channel += ":" + strconv.Itoa(one.Options().DB)
	}
	return channel
}

// live tells and hears until ctx ends. The bus lasts until the rest has been told.
func (n *news) live(ctx context.Context) error {
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
func (n *news) Changed(o order.Order) {
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
func (n *news) Held(sku, strategy string, f dlock.Fence) { n.Lock(sku, strategy, f.Token) }

// tellingTimers is an observer of timers that tells what became of them.
type tellingTimers struct {
	timeout.Observer

	news *news
}

// Settled implements [timeout.Observer].
func (t tellingTimers) Settled(kind string, v timeout.Verdict, n int) {
	t.Observer.Settled(kind, v, n)
	t.news.Timers(kind, string(v), n)
}

// roster follows who is in the cluster, to tell of changes. Of all instances the one whose
// name comes first tells: so each change is told once, as long as they see the same.
type roster struct {
	self string
	news *news
	seen map[string]cluster.Member // nil until the first view
}

// look compares a view with the one before.
func (c *roster) look(view cluster.View) {
	now := make(map[string]cluster.Member, len(view.Members))
	for _, m := range view.Members {
		now[m.Name] = m
	}
	before := c.seen
	c.seen = now
	if before == nil { // who was there before this instance is no news
		before = maps.Clone(now)
		delete(before, c.self)
	}
	if len(view.Members) == 0 || view.Members[0].Name != c.self {
		return
	}
	for name, m := range before {
		if is, ok := now[name]; !ok || !is.Started.Equal(m.Started) {
			c.news.Member(memberEvent(m, true))
		}
	}
	for _, m := range view.Members {
		if was, ok := before[m.Name]; !ok || !was.Started.Equal(m.Started) {
			c.news.Member(memberEvent(m, false))
		}
	}
}

func memberEvent(m cluster.Member, left bool) events.Member {
	return events.Member{Name: m.Name, Address: m.Address, Role: m.Role, Left: left}
}
