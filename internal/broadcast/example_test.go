package broadcast_test

import (
	"context"
	"fmt"
	"strconv"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
)

// Two instances; one says what it has sold, and the other one shows it.
func ExampleBus_subscribe() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hub := &membus.Hub{}
	one, two := join(ctx, hub, "shop-1"), join(ctx, hub, "shop-2")

	s, err := two.Subscribe("stock.*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	one.Publish("order.alice", "placed") // not asked for
	one.Publish("stock.lamp", "3 left")
	two.Publish("stock.lamp", "2 left")
	for range 3 {
		e, err := s.Next(ctx)
		switch {
		case err != nil:
			fmt.Println(err)
		case e.Missed != nil:
			fmt.Println(e.Missed.Reason)
		default:
			fmt.Println(e.Message.ID.Origin, e.Message.ID.Seq, e.Message.Topic, e.Message.Payload)
		}
	}
	// Output:
	// connected
	// shop-1 2 stock.lamp 3 left
	// shop-2 1 stock.lamp 2 left
}

// A copy of something that changes seldom is read at each notice, the first one
// included, and changed by messages in between.
func ExampleMissed() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hub := &membus.Hub{}
	bus := join(ctx, hub, "shop-1")
	stored := "8" // in the database

	s, err := bus.Subscribe("config.permits")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	follow := func() {
		for s.Len() > 0 {
			e, err := s.Next(ctx)
			switch {
			case err != nil:
				fmt.Println(err)
			case e.Missed != nil && e.Missed.Reason != broadcast.Disconnected:
				fmt.Println(e.Missed.Reason, "- read:", stored)
			case e.Missed == nil:
				fmt.Println("told:", e.Message.Payload)
			}
		}
	}
	follow()
	stored = "16"
	bus.Publish("config.permits", stored)
	follow()
	hub.Interrupt(func() { // nobody hears of this
		stored = "32"
		bus.Publish("config.permits", stored)
	})
	follow()
	// Output:
	// connected - read: 8
	// told: 16
	// connected - read: 32
}

// A reader that is too slow is told how much it missed, and goes on from there.
func ExampleSubscription_slow() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	bus := join(ctx, &membus.Hub{}, "shop-1") // with room for four events
	s, err := bus.Subscribe("*")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for i := range 10 {
		bus.Publish("t", strconv.Itoa(i))
	}
	for s.Len() > 0 {
		e, err := s.Next(ctx)
		switch {
		case err != nil:
			fmt.Println(err)
		case e.Missed != nil:
			fmt.Println(e.Missed.Reason, e.Missed.Count)
		default:
			fmt.Println(e.Message.Payload)
		}
	}
	// Output:
	// connected 0
	// 0
	// 1
	// 2
	// overflow 7
}

// join returns a bus that runs until ctx ends, with queues of four events.
func join(ctx context.Context, hub *membus.Hub, name string) *membus.Bus {
	bus, err := membus.New(hub, membus.Config{Instance: name, Queue: 4})
	if err != nil {
		panic(err)
	}
	go bus.Run(ctx)
	for !bus.Stats().Live {
		continue
	}
	return bus
}
