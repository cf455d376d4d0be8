package redislog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/redislog"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// processorTime returns the seconds of user time that a Redis has used.
func processorTime(b *testing.B, url string) (seconds float64) {
	b.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		b.Fatal(err)
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	cpu := rdb.InfoMap(b.Context(), "cpu").Item("CPU", "used_cpu_user")
	if _, err := fmt.Sscan(cpu, &seconds); err != nil {
		b.Fatal(err)
	}
	return seconds
}

// BenchmarkEvents measures an event from one of three instances to the listeners of all three: 500 at a time, as under load.
func BenchmarkEvents(b *testing.B) {
	server := testbedtest.StartRedis(b, testbed.RedisConfig{})
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var publishers []*events.Publisher
	var listeners []*events.Listener
	for i := range 3 {
		rdb, err := redisclient.New(server.URL())
		if err != nil {
			b.Fatal(err)
		}
		defer rdb.Close()
		log, err := redislog.New(rdb)
		if err != nil {
			b.Fatal(err)
		}
		feed, err := events.NewFeed(log, events.FeedConfig{})
		if err != nil {
			b.Fatal(err)
		}
		p := events.NewPublisher(log, events.PublisherConfig{Instance: fmt.Sprint("shop-", i)})
		running.Go(func() { _ = feed.Run(ctx) })
		running.Go(func() { _ = p.Run(ctx) })
		for !feed.Stats().Live {
			time.Sleep(time.Millisecond)
		}
		l, err := feed.Listen(events.Filter{}, "")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		publishers, listeners = append(publishers, p), append(listeners, l)
	}
	const at = 500
	order := events.Order{ID: "01890000-0000-7000-8000-000000000000", CustomerID: "customer-000000", Status: "PENDING", Items: []events.Item{{SKU: "lamp-0000", Quantity: 1}}}
	n := 0
	for b.Loop() {
		if n++; n%at > 0 {
			publishers[n%3].Order(order)
			continue
		}
		publishers[n%3].Order(order)
		for _, l := range listeners {
			for got := 0; got < at; {
				notices, err := l.Next(ctx)
				if err != nil {
					b.Fatal(err)
				}
				for _, one := range notices {
					if one.Reset == "" {
						got++
					}
				}
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(processorTime(b, server.URL())*1e9/float64(b.N), "redis-ns/op")
}
