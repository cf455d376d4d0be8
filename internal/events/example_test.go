package events_test

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
)

// A page follows the orders of one customer at one instance, and continues at another one.
func ExampleFeed_Listen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := memlog.New() // of instances in several processes: redislog
	_, here := open(ctx, log, "shop-1")
	publisher, there := open(ctx, log, "shop-2")

	filter := events.Filter{Customer: "alice"}
	l, err := here.Listen(filter, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	show(ctx, l) // and now the page reads the orders that there are
	publisher.Order(events.Order{ID: "o1", CustomerID: "alice", Status: "PENDING"})
	id := show(ctx, l)
	l.Close()

	publisher.Order(events.Order{ID: "o2", CustomerID: "bob", Status: "PENDING"})
	publisher.Order(events.Order{ID: "o1", CustomerID: "alice", Status: "CONFIRMED"})
	if l, err = there.Listen(filter, id); err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	show(ctx, l)
	// Output:
	// reload: start
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
			fmt.Println("reload:", n.Reset)
			continue
		}
		fmt.Println(n.Event.Order.ID, n.Event.Order.Status)
	}
	return id
}

// open starts an instance until ctx ends.
func open(ctx context.Context, log events.Log, name string) (*events.Publisher, *events.Feed) {
	feed, err := events.NewFeed(log, events.FeedConfig{})
	if err != nil {
		panic(err)
	}
	publisher := events.NewPublisher(log, events.PublisherConfig{Instance: name})
	go publisher.Run(ctx)
	go feed.Run(ctx)
	for !feed.Stats().Live {
		time.Sleep(time.Millisecond)
	}
	return publisher, feed
}
