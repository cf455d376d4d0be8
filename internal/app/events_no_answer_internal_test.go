package app

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// TestOrdersDoNotWaitForEvents: Redis takes what is sent and never answers, and the queue in front of it has long been full. Orders are placed,
// and not published; each of the other changes, which would wait for a second if it waited at all, takes no time.
func TestOrdersDoNotWaitForEvents(t *testing.T) {
	t.Parallel()
	server := testbedtest.StartRedis(t, testbed.RedisConfig{})
	proxy := testbedtest.StartProxy(t, server.Addr())
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: "sqlite:" + t.TempDir() + "/shop.db", Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb, err := redisclient.New("redis://" + proxy.Addr() + "/0")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	published, err := openEvents(Config{Instance: "test"}, rdb, store.LevelsOf, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- published.run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	testbedtest.Eventually(t, "messages arrive", func() bool { return published.feed.Stats().Live })
	proxy.BlackHole()
	const changes = 10_000
	began := time.Now()
	for range changes {
		published.Changed(order.Order{ID: order.NewID(), CustomerID: strings.Repeat("c", 64), Status: order.Pending})
	}
	all := time.Since(began)
	if all > time.Minute {
		t.Errorf("%d changes took %v", changes, all)
	}
	if _, dropped := published.Stats(); dropped == 0 {
		t.Error("the queue is not full")
	}
	if _, _, err := store.CreateSKU(t.Context(), stock.Level{SKU: "a", Strategy: "conditional", OnHand: 1000}); err != nil {
		t.Fatal(err)
	}
	orders := order.NewService(store, stock.NewStrategies(stock.Lockers{}), order.Config{Publisher: published})
	var longest time.Duration
	for range 50 {
		began := time.Now()
		if _, err := orders.Place(t.Context(), order.Purchase{Customer: "ann", Items: []order.Item{{SKU: "a", Quantity: 1}}}); err != nil {
			t.Error(err)
		}
		longest = max(longest, time.Since(began))
	}
	if longest > time.Minute {
		t.Errorf("an order took %v", longest)
	}
	t.Logf("%d changes were notified in %v; of 50 orders the slowest took %v", changes, all.Round(time.Millisecond), longest.Round(time.Millisecond))
}
