package events_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/events"
)

// alone starts an instance, in a bubble.
func alone(t *testing.T, p events.PublisherConfig) *instance {
	t.Helper()
	i := join(t, &testLog{shared: newShared()}, "shop-1", events.FeedConfig{}, p)
	synctest.Wait()
	return i
}

// TestFrequentEventsAreMerged: of frequent changes, a few events a second are published, and no count is lost.
func TestFrequentEventsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads, level atomic.Int64
		i := alone(t, events.PublisherConfig{Levels: func(_ context.Context, skus []string) ([]events.Stock, error) {
			reads.Add(1)
			return []events.Stock{{SKU: skus[0], Available: level.Load()}}, nil
		}})
		l := i.listen(t, events.Filter{}, "")
		const each = 1000
		for n := range each { // for a second
			i.Held("a", "redis", uint64(n+1), time.Now(), nil)
			i.Timers("order.expire", "committed", 2)
			level.Store(int64(n))
			i.Stock("a")
			time.Sleep(time.Millisecond)
		}
		var locks, timers, leases, settled, stocks, fence, available int64
		for _, n := range receive(t, l) {
			switch e := n.Event; e.Type {
			case events.TypeLock:
				locks++
				leases += e.Lock.Count
				fence = int64(e.Lock.Fence)
			case events.TypeTimer:
				timers++
				settled += e.Timer.Outcomes["committed"]
			case events.TypeStock:
				stocks++
				available = e.Stock.Available
			default:
			}
		}
		if leases != each || settled != 2*each || fence != each || available != each-1 {
			t.Errorf("%d leases up to fence %d, %d timers, %d available at last", leases, fence, settled, available)
		}
		if most := int64(5 + 1); locks > most || timers > most || stocks > most || locks < 3 || reads.Load() != stocks {
			t.Errorf("%d, %d and %d events in a second; %d levels were read", locks, timers, stocks, reads.Load())
		}
	})
}

// TestOrdersAreAppendedTogether: a lonely order is appended at once, and many are in ten steps a second, however they come.
func TestOrdersAreAppendedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := alone(t, events.PublisherConfig{})
		l := i.listen(t, events.Filter{}, "")
		wantSaid(t, l, "start")
		for _, c := range []struct {
			orders int
			every  time.Duration
			steps  int64
		}{{1, 0, 1}, {200, 5 * time.Millisecond, 11}, {1000, time.Millisecond, 21}} { // of a hundred, two steps take 64 and 36
			time.Sleep(time.Second)
			before := i.log.calls.Load()
			var latest time.Duration
			var listening sync.WaitGroup
			listening.Go(func() {
				for n := 0; n < c.orders; {
					some, err := l.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					for _, one := range some {
						n++
						latest = max(latest, time.Since(one.Event.At))
					}
				}
			})
			for range c.orders {
				i.place("o")
				time.Sleep(c.every)
			}
			listening.Wait()
			if steps := i.log.calls.Load() - before; steps > c.steps || latest > 100*time.Millisecond || c.orders == 1 && latest > 5*time.Millisecond {
				t.Errorf("%d orders, one every %v: %d steps, the latest event after %v", c.orders, c.every, steps, latest)
			}
		}
	})
}

// A publisher waits neither for a log that takes nothing nor for a database that does not answer. It publishes the
// levels when it can read them.
func TestPublishingNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		var complaints, reads atomic.Int64
		away.Store(true)
		i := alone(t, events.PublisherConfig{
			OnError: func(error) { complaints.Add(1) },
			Levels: func(ctx context.Context, skus []string) ([]events.Stock, error) {
				if away.Load() {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				reads.Add(1)
				levels := make([]events.Stock, len(skus))
				for i, sku := range skus {
					levels[i].SKU = sku
				}
				return levels, nil
			},
		})
		l := i.listen(t, events.Filter{Types: []events.Type{events.TypeStock}}, "")
		wantSaid(t, l, "start")
		began := time.Now()
		for n := range 100 {
			i.Order(events.Order{ID: "o", Items: []events.Item{{SKU: strconv.Itoa(n)}}})
			i.Held("a", "redis", 1, time.Now(), nil)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("publishing took %v", took)
		}
		wantSaid(t, l)
		time.Sleep(time.Minute)
		away.Store(false)
		all := receive(t, l)
		skus := make(map[string]bool)
		for _, n := range all {
			skus[n.Event.Stock.SKU] = true
		}
		if len(all) != 100 || len(skus) != 100 {
			t.Errorf("%d levels of %d SKUs, want 100", len(all), len(skus))
		}
		if complaints.Load() != 1 {
			t.Errorf("%d complaints of one outage", complaints.Load())
		}
		if reads.Load() > 2 {
			t.Errorf("%d reads of 100 levels, want as few as they fit into", reads.Load())
		}

		complaints.Store(0)
		i.log.away.Store(true)
		for range 10_000 {
			i.place("o")
		}
		time.Sleep(time.Minute)
		if complaints.Load() != 1 {
			t.Errorf("%d complaints of one outage of the log", complaints.Load())
		}
	})
}

// TestStopWhileTheLogIsUnavailable counts what could not be published, says so, and ends.
func TestStopWhileTheLogIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &testLog{shared: newShared()}
		log.away.Store(true)
		var complaints []string
		p := events.NewPublisher(log, events.PublisherConfig{OnError: func(err error) { complaints = append(complaints, err.Error()) }})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		for range 300 {
			p.Order(events.Order{ID: "o"})
		}
		time.Sleep(time.Minute)
		began := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, dropped := p.Stats(); dropped != 300 || len(complaints) != 2 || time.Since(began) > 3*time.Second {
			t.Errorf("%d dropped, after %v: %q", dropped, time.Since(began), complaints)
		}
	})
}
