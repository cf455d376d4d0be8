package redisbus_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

// TestUnsentMessagesAreSentLater: a server that cannot be connected to has received nothing, so the messages wait in
// their order, and none is missing.
func TestUnsentMessagesAreSentLater(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		hears := bus(t, client(t, server.URL()), redisbus.Config{Queue: 1024})
		start(t, hears)
		s := subscribe(t, hears, "*")

		var refused atomic.Bool
		refused.Store(true)
		opts, err := redis.ParseURL(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		opts.MaxRetries, opts.ContextTimeoutEnabled, opts.DialerRetries = -1, true, 1
		opts.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			if refused.Load() {
				address = "127.0.0.1:1"
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		rdb := redis.NewClient(opts)
		t.Cleanup(func() { rdb.Close() })
		var told errorsOf
		says := bus(t, rdb, redisbus.Config{Instance: "says", OnError: told.add})
		const n = 600 // more than a batch
		for range n {
			if err := says.Publish("t", "x"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- says.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the sender fails", func() bool { return told.len() >= 2 }) // to listen, and to send
		refused.Store(false)
		for i := range n {
			if e := next(t, s); e.Missed != nil || e.Message.ID.Seq != uint64(i+1) {
				t.Fatalf("got %+v %+v, want message %d", e.Missed, e.Message.ID, i+1)
			}
		}
		if failed := says.Stats().Failed; failed != 0 {
			t.Errorf("%d messages count as failed", failed)
		}
	})
}
