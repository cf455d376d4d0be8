package redisbus_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast/redisbus"
)

// An instance that tells itself and all others. In a service Run is joined by an errgroup.
func ExampleBus() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	defer rdb.Close()

	bus, err := redisbus.New(rdb, redisbus.Config{Instance: "shop-1"})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- bus.Run(ctx) }()

	s, err := bus.Subscribe("order.*")
	if err != nil {
		panic(err)
	}
	for range 2 {
		e, err := s.Next(ctx)
		switch {
		case err != nil:
			panic(err)
		case e.Missed != nil: // the server has confirmed: from here on everything is heard
			fmt.Println(e.Missed.Reason, bus.Publish("order.alice", "paid"))
		default:
			fmt.Println(e.Message.ID.Origin, e.Message.ID.Seq, e.Message.Topic, e.Message.Payload)
		}
	}
	cancel()
	fmt.Println(<-ended, bus.Publish("order.alice", "shipped"))
	// Output:
	// connected <nil>
	// shop-1 1 order.alice paid
	// <nil> broadcast: closed
}
