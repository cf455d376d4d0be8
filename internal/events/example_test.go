package events_test

import (
	"context"
	"fmt"

	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/events"
)

// A page follows the orders of one customer at one instance, and goes on at another one.
func ExampleFeed_Listen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	hub := &membus.Hub{}
	_, here := open(ctx, hub, "shop-1")
	tell, there := open(ctx, hub, "shop-2")

	filter := events.Filter{Customer: "alice"}
	l, err := here.Listen(filter, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	show(ctx, l) // and now the page reads the orders that there are
	tell.Order(events.Order{ID: "o1", CustomerID: "alice", Status: "PENDING"})
	id := show(ctx, l)
	l.Close()

	tell.Order(events.Order{ID: "o2", CustomerID: "bob", Status: "PENDING"})
	tell.Order(events.Order{ID: "o1", CustomerID: "alice", Status: "CONFIRMED"})
	if l, err = there.Listen(filter, id); err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	show(ctx, l)
	// Output:
	// read anew: start
	// o1 PENDING
	// o1 CONFIRMED
}

// show prints what is new, and returns the id of what came last.
func show(ctx context.Context, l *events.Listener) (id string) {
	notices, err := l.Next(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, n := range notices {
		if id = n.ID; n.Reset != "" {
			fmt.Println("read anew:", n.Reset)
			continue
		}
		fmt.Println(n.Event.Order.ID, n.Event.Order.Status)
	}
	return id
}

// open starts an instance that hears the others on the hub, until ctx ends.
func open(ctx context.Context, hub *membus.Hub, name string) (*events.Publisher, *events.Feed) {
	bus, err := membus.New(hub, membus.Config{Instance: name})
	if err != nil {
		panic(err)
	}
	feed, err := events.NewFeed(bus, events.FeedConfig{})
	if err != nil {
		panic(err)
	}
	go bus.Run(ctx)
	go feed.Run(ctx)
	for feed.Stats().Missed == 0 { // until it hears
		continue
	}
	return events.NewPublisher(bus, events.PublisherConfig{Instance: name}), feed
}
