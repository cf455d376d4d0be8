package redisbus_test

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/broadcast/broadcasttest"
	"example.com/shop/internal/broadcast/redisbus"
	"example.com/shop/internal/testbed"
	"example.com/shop/internal/testbed/testbedtest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it would report each of the faults
	testbedtest.Main(m)
}

// silent is a logger of go-redis.
type silent struct{}

// Printf implements its interface.
func (silent) Printf(context.Context, string, ...any) {}

// patient bounds what a test waits for, on a machine that is busy.
const patient = 30 * time.Second

// client returns a client of a server, as New requires it, with a name of its own.
func client(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	opts.MaxRetries, opts.ContextTimeoutEnabled, opts.DialerRetries, opts.ClientName = -1, true, 1, rand.Text()
	rdb := redis.NewClient(opts)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func clusterClient(tb testing.TB, c *testbed.Cluster) *redis.ClusterClient {
	tb.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: c.Addrs(), MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
		ClusterStateReloadInterval: time.Second, ClientName: rand.Text(),
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func sentinelClient(tb testing.TB, s *testbed.Sentinel) *redis.Client {
	tb.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.MasterName(), SentinelAddrs: s.SentinelAddrs(), ClientName: rand.Text(),
		MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1,
	})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func bus(tb testing.TB, rdb redis.UniversalClient, cfg redisbus.Config) *redisbus.Bus {
	tb.Helper()
	b, err := redisbus.New(rdb, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// start runs b until the test ends, or calls what it returns, and waits until messages arrive.
func start(tb testing.TB, b *redisbus.Bus) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("Run = %v", err)
		}
	})
	tb.Cleanup(stop)
	broadcasttest.Live(tb, b)
	return stop
}

// harness runs the suite with a client for each bus.
func harness(open func(tb testing.TB) redis.UniversalClient) broadcasttest.Harness {
	var clients sync.Map // by bus
	return broadcasttest.Harness{
		Open: func(t testing.TB, n, queue int) (buses []broadcast.Bus) {
			t.Helper()
			channel := "shop:broadcast:{" + rand.Text() + "}"
			for i := range n {
				rdb := open(t)
				b := bus(t, rdb, redisbus.Config{Instance: "bus-" + strconv.Itoa(i), Channel: channel, Queue: queue})
				clients.Store(b, rdb)
				buses = append(buses, b)
			}
			return buses
		},
		Interrupt: func(t testing.TB, b broadcast.Bus) {
			t.Helper()
			v, _ := clients.Load(b)
			rdb, ok := v.(redis.UniversalClient)
			if !ok {
				t.Fatal("a bus of another harness")
			}
			kill(t, rdb)
		},
	}
}

// kill closes the connections on which the bus of a client listens.
func kill(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	each := func(ctx context.Context, node *redis.Client) error {
		list, err := node.ClientList(ctx).Result()
		if err != nil {
			return err
		}
		for line := range strings.Lines(list) {
			if f := fields(line); f["name"] == node.Options().ClientName && (f["sub"] != "0" || f["ssub"] != "0" && f["ssub"] != "") {
				node.ClientKillByFilter(ctx, "ID", f["id"])
			}
		}
		return nil
	}
	var err error
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		err = c.ForEachShard(t.Context(), each)
	case *redis.Client:
		err = each(t.Context(), c)
	}
	if err != nil {
		t.Logf("kill: %v", err)
	}
}

// fields reads a line of CLIENT LIST.
func fields(line string) map[string]string {
	f := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(word, "=")
		f[key] = value
	}
	return f
}

func TestBusOnRedis(t *testing.T) {
	t.Parallel()
	url := testbedtest.Redis(t)
	broadcasttest.Run(t, harness(func(tb testing.TB) redis.UniversalClient {
		tb.Helper()
		return client(tb, url)
	}))
}

func TestBusOnMiniredis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	t.Run("suite", func(t *testing.T) { // the server outlives cases that run in parallel
		h := harness(func(tb testing.TB) redis.UniversalClient {
			tb.Helper()
			return client(tb, "redis://"+m.Addr())
		})
		h.Interrupt = nil // it knows no CLIENT KILL
		broadcasttest.Run(t, h)
	})
}
