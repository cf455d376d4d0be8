package redistest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// Link returns what a conformance test does to the connections through proxy.
func Link(t testing.TB, proxy *testbed.Proxy) dlocktest.Link {
	return dlocktest.Link{
		Cut: proxy.BlackHole,
		Heal: func() {
			if err := proxy.Pass(); err != nil {
				t.Error(err)
			}
		},
		LoseReply: func() { proxy.DropReply("evalsha") },
		Lost:      proxy.Dropped,
		Refuse:    proxy.Refuse,
	}
}

// Answers are what go-redis says of a request that was answered, or not sent.
var Answers = []error{redis.Nil, redis.ErrPoolTimeout}

// Client returns a client that is closed at the end of the test.
func Client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisclient.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Proxied returns a client whose connections go through a proxy.
func Proxied(t testing.TB, url string) (redis.UniversalClient, dlocktest.Link) {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := testbedtest.StartProxy(t, opts.Addr)
	return Client(t, "redis://"+proxy.Addr()), Link(t, proxy)
}

// Watched fails the test if a command ever has keys that a cluster refuses. A server of its own
// takes them, so there the hash tags of the keys of each script are compared.
func Watched(t testing.TB, rdb redis.UniversalClient) redis.UniversalClient {
	t.Helper()
	crossed := &crossSlots{}
	rdb.AddHook(testbedtest.RoundTrips(crossed.roundTrip))
	t.Cleanup(func() {
		if n := crossed.n.Load(); n > 0 {
			t.Errorf("%d commands had keys of several slots", n)
		}
	})
	return rdb
}

// SentinelURL names the master of a group.
func SentinelURL(s *testbed.Sentinel) string {
	return "redis+sentinel://" + strings.Join(s.SentinelAddrs(), ",") + "/" + s.MasterName()
}

// ClusterURL names the nodes of a cluster.
func ClusterURL(c *testbed.Cluster) string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// MustTake takes key, or fails the test.
func MustTake(t testing.TB, take func(context.Context, string) (*dlock.Lease, error), key string) *dlock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := take(ctx, key)
	for errors.Is(err, dlock.ErrUncertain) && ctx.Err() == nil { // the machine is busy
		lease, err = take(ctx, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lease.Release(context.WithoutCancel(t.Context())) })
	return lease
}

// Targets runs a test on a real server and on miniredis.
func Targets(t *testing.T, f func(t testing.TB, rdb redis.UniversalClient)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, Client(t, testbedtest.Redis(t)))
		})
	})
	t.Run("miniredis", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			f(t, Client(t, "redis://"+miniredis.RunT(t).Addr()))
		})
	})
}

// Quiet is for clients of this file's own making: the notifications that they ask
// the server for by default have goroutines that outlive Close.
func Quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}
