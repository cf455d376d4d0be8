package events_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
)

// audience has listeners wait, one for each filter, until the test ends, and returns how many events each has received.
func audience(t *testing.T, i *instance, filters []events.Filter) []int {
	t.Helper()
	received := make([]int, len(filters))
	ctx, stop := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for n, f := range filters {
		l := i.listen(t, f, "")
		waiting.Go(func() {
			for {
				notices, err := l.Next(ctx)
				if err != nil {
					return
				}
				for _, one := range notices {
					if one.Reset == "" {
						received[n]++
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		stop()
		waiting.Wait()
	})
	time.Sleep(time.Second) // until all have begun
	synctest.Wait()
	return received
}

// TestListenersAreWokenForTheirEventsOnly, by customer, order and SKU: an event costs those nothing whom it is not for.
func TestListenersAreWokenForTheirEventsOnly(t *testing.T) {
	const others, placed = 100, 50
	for name, of := range map[string]func(who string) events.Filter{
		"customer": func(who string) events.Filter { return events.Filter{Customer: "c" + who} },
		"order":    func(who string) events.Filter { return events.Filter{Order: "o" + who} },
		"SKU":      func(who string) events.Filter { return events.Filter{SKU: "s" + who} },
		"customer and order": func(who string) events.Filter {
			return events.Filter{Customer: "c" + who, Order: "o" + who}
		},
		"customer and levels of a SKU": func(who string) events.Filter {
			return events.Filter{Customer: "c" + who, SKU: "s" + who, Types: []events.Type{events.TypeOrder, events.TypeStock}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, all := fleet(t, 1, events.FeedConfig{})
				filters := []events.Filter{of("0")}
				for n := range others {
					filters = append(filters, of(strconv.Itoa(n+1)))
				}
				received := audience(t, all[0], filters)
				before := all[0].feed.Stats().Looks
				for range placed {
					all[0].Order(events.Order{ID: "o0", CustomerID: "c0", Items: []events.Item{{SKU: "s0", Quantity: 1}}})
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				// To take an event, and to find that there is no other.
				if looks := all[0].feed.Stats().Looks - before; received[0] != placed || looks > 2*placed {
					t.Errorf("received %d of %d events, and %d listeners looked %d times", received[0], placed, others+1, looks)
				}
				for n, other := range received[1:] {
					if other != 0 {
						t.Errorf("listener %d received %d events", n+1, other)
					}
				}
			})
		})
	}
}

// TestSleepingListenerMissesNothing when the ring has forgotten many events, and none for it; but it is notified when one was.
func TestSleepingListenerMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, all := fleet(t, 1, events.FeedConfig{Buffer: 10})
		f := events.Filter{Customer: "c2"}
		quiet, late := all[0].listen(t, f, ""), all[0].listen(t, f, "")
		wantSaid(t, quiet, "start")
		wantSaid(t, late, "start")
		others := func() {
			for n := range 30 {
				all[0].place(strconv.Itoa(n))
			}
			synctest.Wait()
		}
		own := func(id string) { all[0].Order(events.Order{ID: id, CustomerID: "c2"}) }
		others()
		id := quiet.ID() // as in a heartbeat, without having been woken
		wantSaid(t, all[0].listen(t, f, id))
		own("a")
		others()
		wantSaid(t, quiet, "slow") // "a" has left the ring
		own("b")
		wantSaid(t, quiet, "b")
		wantSaid(t, all[0].listen(t, f, id), "gone")
		others()
		own("c")
		wantSaid(t, quiet, "c")
		wantSaid(t, late, "slow")
	})
}

// BenchmarkEventOfSomebodyElse measures what an event costs an instance to which 2,000 customers listen whom it is not for.
func BenchmarkEventOfSomebodyElse(b *testing.B) {
	log := memlog.New()
	feed, err := events.NewFeed(log, events.FeedConfig{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = feed.Run(ctx) })
	for n := range 2000 {
		l, err := feed.Listen(events.Filter{Customer: fmt.Sprint("c", n)}, "")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		running.Go(func() {
			for !errors.Is(err, context.Canceled) {
				_, err = l.Next(ctx)
			}
		})
	}
	for feed.Stats().Looks < 2*2000 { // until all wait
		time.Sleep(time.Millisecond)
	}
	number, before := uint64(0), feed.Stats().Looks
	for b.Loop() {
		number++
		batch := events.Batch{Writer: "w", Number: number, Texts: []string{`{"type":"order","order":{"id":"x","customer_id":"somebody"}}`}}
		if err := log.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
		for feed.Stats().Received < number {
			runtime.Gosched()
		}
	}
	b.ReportMetric(float64(feed.Stats().Looks-before)/float64(number), "looks/op")
}
