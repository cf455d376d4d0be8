package redislog_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events"
	"example.com/shop/internal/events/eventstest"
	"example.com/shop/internal/events/redislog"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

// client returns a client until the test ends.
func client(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func open(t *testing.T, url string) *redislog.Log {
	t.Helper()
	log, err := redislog.New(client(t, url))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestConformance(t *testing.T) {
	t.Parallel()
	eventstest.RunLog(t, func(t *testing.T) events.Log {
		t.Helper()
		return open(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
	})
}

func TestNewRefusesAClientThatRepeats(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	if _, err := redislog.New(rdb); err == nil {
		t.Error("a client that repeats commands is accepted")
	}
}

// fault is what happens to a server while events are published.
type fault struct {
	name  string
	loses bool // data
	cause func(t *testing.T, server *testbed.Redis, proxy *testbed.Proxy)
}

var faults = []fault{
	{"none", false, func(*testing.T, *testbed.Redis, *testbed.Proxy) {}},
	{"connections are killed", false, func(t *testing.T, server *testbed.Redis, _ *testbed.Proxy) {
		t.Helper()
		if err := client(t, server.URL()).ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
	}},
	{"replies to Append are lost", false, func(t *testing.T, _ *testbed.Redis, proxy *testbed.Proxy) {
		t.Helper()
		dropped := proxy.Dropped()
		proxy.DropReply("order")
		testbedtest.Eventually(t, "a reply is lost", func() bool { return proxy.Dropped() > dropped })
	}},
	{"the network is a black hole", false, func(t *testing.T, _ *testbed.Redis, proxy *testbed.Proxy) {
		t.Helper()
		proxy.BlackHole()
		<-time.After(1500 * time.Millisecond) // longer than a call
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
	}},
	{"the server is restarted empty", true, func(t *testing.T, server *testbed.Redis, _ *testbed.Proxy) {
		t.Helper()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
	}},
	{"all data is deleted", true, func(t *testing.T, server *testbed.Redis, _ *testbed.Proxy) {
		t.Helper()
		if err := client(t, server.URL()).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}},
}

// A listener receives each event once, in order, through faults. Only if the server has lost data, and the listener had
// to restart, may it lack events.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			server := testbedtest.StartRedis(t, testbed.RedisConfig{})
			proxy := testbedtest.StartProxy(t, server.Addr())
			log := open(t, "redis://"+proxy.Addr()+"/0")
			feed, err := events.NewFeed(log, events.FeedConfig{})
			if err != nil {
				t.Fatal(err)
			}
			publisher := events.NewPublisher(log, events.PublisherConfig{Instance: "shop-1"})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer stop()
			running.Go(func() { _ = feed.Run(ctx) })
			running.Go(func() { _ = publisher.Run(ctx) })
			testbedtest.Eventually(t, "the feed reads", func() bool { return feed.Stats().Live })
			l, err := feed.Listen(events.Filter{}, "")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			const orders, faulty = 600, 5
			var publishing sync.WaitGroup
			defer publishing.Wait()
			done := make(chan struct{})
			publishing.Go(func() {
				defer close(done)
				for range faulty {
					f.cause(t, server, proxy)
				}
			})
			publishing.Go(func() {
				for n := range orders {
					publisher.Order(events.Order{ID: fmt.Sprint(n)})
					<-time.After(time.Millisecond)
				}
				<-done
				publisher.Order(events.Order{ID: fmt.Sprint(orders)})
			})
			received(t, l, orders, f.loses)
		})
	}
}

// received reads orders up to the last one.
func received(t *testing.T, l *events.Listener, last int, loses bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for next, resets, gap := 0, 0, false; ; {
		notices, err := l.Next(ctx)
		if err != nil {
			t.Fatalf("after order %d: %v", next-1, err)
		}
		for _, n := range notices {
			if n.Reset != "" {
				if resets++; resets > 1 && !loses {
					t.Errorf("reset: %s", n.Reset)
				}
				gap = true
				continue
			}
			var order int
			if _, err := fmt.Sscan(n.Event.Order.ID, &order); err != nil {
				t.Fatal(err)
			}
			if order != next && !gap || order < next && !loses {
				t.Fatalf("received order %d, want %d; gap: %v", order, next, gap)
			}
			next, gap = order+1, false
			if order == last {
				return
			}
		}
	}
}

// A failover removes a batch that no other reader has. The next batch of its writer is marked.
func TestBatchThatAFailoverRemoves(t *testing.T) {
	t.Parallel()
	rdb := client(t, testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
	log, err := redislog.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	write := func(writer string, number uint64) events.Entry {
		t.Helper()
		if err := log.Append(t.Context(), events.Batch{Writer: writer, Number: number, Texts: []string{writer}}); err != nil {
			t.Fatal(err)
		}
		latest, err := log.Latest(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return latest[0]
	}
	write("a", 1)
	removed := write("a", 2)
	if err := rdb.XDel(t.Context(), "shop:events:{all}", removed.ID.String()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), "shop:events:{all}:a", 1, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		writer string
		number uint64
		lost   bool
	}{{"b", 1, false}, {"a", 3, true}, {"a", 4, false}, {"b", 2, false}} {
		if e := write(w.writer, w.number); e.Lost != w.lost {
			t.Errorf("batch %d of %s is marked: %v, want %v", w.number, w.writer, e.Lost, w.lost)
		}
	}
}
