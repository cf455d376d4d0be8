package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/events"
	"example.com/shop/internal/events/memlog"
	"example.com/shop/internal/stock"
)

// TestStopPublishesTheRemainingEvents: the last events of timers are published before the instance is silent, with the levels after them.
func TestStopPublishesTheRemainingEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const skus = 200
		shared := memlog.New()
		open := func(c events.PublisherConfig) *eventLog {
			feed, err := events.NewFeed(shared, events.FeedConfig{})
			if err != nil {
				t.Fatal(err)
			}
			return &eventLog{events.NewPublisher(shared, c), feed}
		}
		idle := func(ctx context.Context) error { <-ctx.Done(); return nil }
		stays, stops := open(events.PublisherConfig{}), open(events.PublisherConfig{
			Instance: "stops",
			Levels: func(ctx context.Context, skus []string) ([]events.Stock, error) {
				levels := make([]events.Stock, len(skus))
				for i, sku := range skus {
					time.Sleep(time.Millisecond)
					levels[i].SKU = sku
				}
				return levels, ctx.Err()
			},
		})
		end := make(chan error, 2)
		staying, stop := context.WithCancel(t.Context())
		go func() { end <- runAll(staying, idle, stays.run) }()
		stopping, terminate := context.WithCancel(t.Context())
		go func() {
			end <- runAll(stopping, idle, stops.run, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second) // the batch that has begun
				for n := range skus {
					stops.Order(events.Order{ID: "o", Items: []events.Item{{SKU: strconv.Itoa(n), Quantity: 1}}})
				}
				stops.Timers("order.expire", "committed", skus)
				return nil
			})
		}()
		synctest.Wait()
		l, err := stays.feed.Listen(events.Filter{}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		began := time.Now()
		terminate()
		if err := <-end; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if heard := received(t, l); heard[events.TypeOrder] != skus || heard[events.TypeStock] != skus || heard[events.TypeTimer] != 1 || heard[""] != 1 {
			t.Errorf("%v, where the last is the reset at the start", heard)
		}
		stop()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}

// received counts the events that a listener receives until none arrives for a minute.
func received(t *testing.T, l *events.Listener) map[events.Type]int {
	t.Helper()
	count := make(map[events.Type]int)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		some, err := l.Next(ctx)
		cancel()
		if err != nil {
			return count
		}
		for _, n := range some {
			count[n.Event.Type]++
		}
	}
}

// entries is a store of settings that somebody else changes.
type entries chan map[string]cluster.Entry

func (e entries) Entries(ctx context.Context, _ ...string) iter.Seq2[map[string]cluster.Entry, error] {
	return func(yield func(map[string]cluster.Entry, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-e:
				if !yield(now, nil) {
					return
				}
			}
		}
	}
}

func (entries) Write(context.Context, string, string, int64) (int64, error) {
	return 0, cluster.ErrReadOnly
}

// TestDeletedPermitsHaveTheDefault of the flag again; until they are set they are left alone, as all instances share them.
func TestDeletedPermitsHaveTheDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := make(entries)
		settings, err := cluster.NewSettings(cluster.SettingsConfig{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		n := &node{lead: new(leadership), settings: settings, log: slog.New(slog.DiscardHandler)}
		if err := n.define(Config{Permits: 5, OrderTTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		got, calls := make(chan int, 10), 0
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- settings.Run(ctx) }()
		go n.keepPermits(ctx, reloadable{
			permits: func(_ context.Context, number int) error {
				if calls++; calls == 1 {
					return errors.New("redis does not answer") // and is asked again
				}
				got <- number
				return nil
			},
			permitted: func() int { return 0 }, // of which only a leader takes notice
		})
		none := map[string]cluster.Entry{}
		store <- none
		synctest.Wait()
		if len(got) != 0 {
			t.Errorf("the permits were changed to %d", <-got)
		}
		store <- map[string]cluster.Entry{"permits": {Text: "8", Version: 1}}
		if number := <-got; number != 8 {
			t.Errorf("%d permits, want 8", number)
		}
		store <- none
		synctest.Wait()
		if len(got) != 1 || <-got != 5 {
			t.Error("the permits did not become 5 again")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A refused write shows both fencing tokens as the row counts them, also after a rebase.
func TestRefusedWriteShowsTheTokensOfTheRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		none := func(context.Context, []string) ([]stock.Level, error) { return nil, nil }
		n, err := openEvents(Config{}, nil, none, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(t.Context())
		end := make(chan error, 1)
		go func() { end <- n.run(running) }()
		synctest.Wait()
		l, err := n.feed.Listen(events.Filter{}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		n.Fenced("zookeeper", &stock.FencedError{
			Refused: stock.Claim{SKU: "a", Fence: dlock.Fence{Token: 43}, Base: 41}, Accepted: dlock.Fence{Token: 44}, Base: 41,
		})
		var refused []events.Refusal
		for len(refused) == 0 {
			some, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range some {
				if e.Event.Lock != nil {
					refused = append(refused, e.Event.Lock.Refused...)
				}
			}
		}
		if len(refused) != 1 || refused[0].Fence != 43 || refused[0].Accepted != 44 {
			t.Errorf("refused writes: %v, want 43 after 44", refused)
		}
		stop()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}
