package events_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/membus"
	"example.com/shop/internal/events"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// instance is one of several that hear one another.
type instance struct {
	*events.Publisher

	bus  broadcast.Bus
	feed *events.Feed
}

// join starts an instance on a bus until the test ends.
func join(t *testing.T, bus broadcast.Bus, name string, c events.FeedConfig, p events.PublisherConfig) *instance {
	t.Helper()
	feed, err := events.NewFeed(bus, c)
	if err != nil {
		t.Fatal(err)
	}
	p.Instance = name
	i := &instance{events.NewPublisher(bus, p), bus, feed}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{bus.Run, feed.Run, i.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	return i
}

// fleet starts so many instances in memory, in a bubble.
func fleet(t *testing.T, n int, c events.FeedConfig) (*membus.Hub, []*instance) {
	t.Helper()
	hub := &membus.Hub{}
	all := make([]*instance, n)
	for i := range all {
		name := fmt.Sprint("shop-", i+1)
		bus, err := membus.New(hub, membus.Config{Instance: name, Queue: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		all[i] = join(t, bus, name, c, events.PublisherConfig{})
	}
	synctest.Wait()
	return hub, all
}

// listen listens until the test ends.
func (i *instance) listen(t *testing.T, f events.Filter, lastID string) *events.Listener {
	t.Helper()
	l, err := i.feed.Listen(f, lastID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// hear returns what comes until nothing has come for a second.
func hear(t *testing.T, l *events.Listener) (all []events.Notice) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		some, err := l.Next(ctx)
		cancel()
		if err != nil {
			return all
		}
		all = append(all, some...)
	}
}

// said returns what notices say, in short: orders by their ids, the others by their types, and resets by their reasons.
func said(notices []events.Notice) (all []string) {
	for _, n := range notices {
		switch {
		case n.Reset != "":
			all = append(all, string(n.Reset))
		case n.Event.Order != nil:
			all = append(all, n.Event.Order.ID)
		default:
			all = append(all, string(n.Event.Type))
		}
	}
	return all
}

// wantSaid fails the test unless the listener hears that, and nothing else.
func wantSaid(t *testing.T, l *events.Listener, want ...string) []events.Notice {
	t.Helper()
	notices := hear(t, l)
	if got := said(notices); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	return notices
}

// place tells of an order.
func (i *instance) place(id string) {
	i.Order(events.Order{ID: id, CustomerID: "c1", Status: "PENDING"})
}
