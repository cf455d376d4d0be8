package broadcast_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/events/broadcast"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // it would report each of the faults
	testbedtest.Main(m)
}

// silent is a logger of go-redis.
type silent struct{}

// Printf implements its interface.
func (silent) Printf(context.Context, string, ...any) {}

// client returns a client until the test ends.
func client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// open returns a bus that passes its errors to report.
func open(t testing.TB, rdb redis.UniversalClient, report func(error)) *broadcast.Bus {
	t.Helper()
	b, err := broadcast.New(rdb, report)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ignore(error) {}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		conform(t, testbedtest.Redis(t))
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		conform(t, sentinelURL(testbedtest.StartSentinel(t)))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		conform(t, clusterURL(testbedtest.StartCluster(t)))
	})
}

func sentinelURL(s *testbed.Sentinel) string {
	return "redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName()
}

func clusterURL(c *testbed.Cluster) string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// open returns n buses as n processes have them, each with a client of its own.
func (h *harness) open(t testing.TB, n int) (buses []*broadcast.Bus) {
	t.Helper()
	for range n {
		rdb, c := client(t, h.url), new(dialed)
		if cluster, ok := rdb.(*redis.ClusterClient); ok {
			cluster.OnNewNode(func(node *redis.Client) { node.AddHook(testbedtest.Dials(c.add)) })
		} else {
			rdb.AddHook(testbedtest.Dials(c.add))
		}
		b := open(t, rdb, ignore)
		h.connections.Store(b, c)
		buses = append(buses, b)
	}
	return buses
}

// interrupt cuts the connections of a bus.
func (h *harness) interrupt(t testing.TB, b *broadcast.Bus) {
	t.Helper()
	v, _ := h.connections.Load(b)
	if c, ok := v.(*dialed); ok {
		c.cut()
	}
}

// dialed has the connections of a client.
type dialed struct {
	mu  sync.Mutex
	all []net.Conn
}

func (d *dialed) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.all {
		c.Close()
	}
	d.all = nil
}

func (d *dialed) add(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c)
}

func TestNewRefusesAClientThatRepeats(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	if _, err := broadcast.New(rdb, ignore); err == nil {
		t.Error("a client that repeats commands is accepted")
	}
}

// Redis does not separate the channels of its databases.
func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		for _, database := range []string{"/0", "/1"} {
			b := open(t, client(t, "redis://"+server.Addr()+database), ignore)
			r := read(t, b, "topic")
			defer func() {
				if e := r.next(t); e.Payload != database {
					t.Errorf("database %s received %+v", database, e)
				}
			}()
			defer func() {
				if err := b.Publish(t.Context(), "topic", database); err != nil {
					t.Error(err)
				}
			}()
		}
	})
}
