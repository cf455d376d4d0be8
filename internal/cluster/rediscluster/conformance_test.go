package rediscluster_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/rediscluster"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/testbed/testbedtest"
)

// ttl is how long a member that has died is listed in the tests. A third of it is a time
// within which a busy machine must still get something done.
const ttl = 2 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestCluster(t *testing.T) {
	t.Parallel()
	url := testbedtest.Redis(t)
	clustertest.Run(t, clustertest.Harness{
		New: func(t testing.TB, group string, onError func(error)) clustertest.Instance {
			return instance(t, url, group, onError)
		},
		TTL:  ttl,
		Seen: time.Second,
		FIFO: true,
		Behind: func(t testing.TB, group string) (clustertest.Instance, clustertest.Link) {
			proxy := testbedtest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(url, "redis://"), "/0"))
			return instance(t, "redis://"+proxy.Addr()+"/0", group, func(error) {}), clustertest.Link{
				Cut: proxy.BlackHole,
				Heal: func() {
					if err := proxy.Pass(); err != nil {
						t.Error(err)
					}
				},
				LoseJoin: func() { proxy.DropReply("{members}") },
				Lost:     proxy.Dropped,
			}
		},
		Expire: func(t testing.TB, group, name string) {
			check(t, client(t, url).ZAdd(t.Context(), prefix(group)+"{members}:leases", redis.Z{Member: name}).Err())
		},
		Stray: func(t testing.TB, group string) int {
			const live = "api;v1;20260102T030405.000Z"
			return strays(t, client(t, url), group, map[string]string{
				"no entry": "", "no member": "x", "too short": "x;name", "no time": "x;name;addr;role;v;yesterday",
				"another name": "x;name;addr;" + live, "no name": "x;;addr;" + live, "escape": "x;%zz;addr;" + live,
			})
		},
		Process: func(_ testing.TB, group string) (string, []string) {
			return "TestInstance", []string{serverVariable + "=" + url, groupVariable + "=" + group}
		},
	})
}

// strays adds members whose entries cannot be read, and one that has no lease and does
// not count, and returns how many count.
func strays(t testing.TB, rdb redis.UniversalClient, group string, entries map[string]string) int {
	t.Helper()
	base := prefix(group) + "{members}"
	check(t, rdb.HSet(t.Context(), base, "no lease", "x;no lease;addr;api;v1;20260102T030405.000Z").Err())
	for name, entry := range entries {
		if entry != "" {
			check(t, rdb.HSet(t.Context(), base, name, entry).Err())
		}
		lease := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: name}
		check(t, rdb.ZAdd(t.Context(), base+":leases", lease).Err())
	}
	check(t, rdb.HIncrBy(t.Context(), base+":state", "revision", 1).Err())
	return len(entries)
}

const (
	serverVariable = "SHOP_TEST_REDISCLUSTER_SERVER"
	groupVariable  = "SHOP_TEST_REDISCLUSTER_GROUP"
)

// TestInstance is no test: the conformance tests run it in processes of their own.
func TestInstance(t *testing.T) {
	clustertest.Serve(t, func(t testing.TB) (clustertest.Instance, string) {
		group := os.Getenv(groupVariable)
		return instance(t, os.Getenv(serverVariable), group, func(error) {}), group
	})
}

// prefix begins the keys of a group.
func prefix(group string) string { return "shop:cluster:" + group + ":" }

func client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := redisx.New(url)
	check(t, err)
	t.Cleanup(func() { check(t, rdb.Close()) })
	return rdb
}

// instance has clients of its own, as another process would. Its configuration is fixed.
func instance(t testing.TB, url, group string, onError func(error)) clustertest.Instance {
	t.Helper()
	c, err := rediscluster.New(client(t, url), rediscluster.Config{TTL: ttl, Prefix: prefix(group), OnError: onError})
	check(t, err)
	l, err := redislock.New(client(t, url), redislock.Config{TTL: ttl})
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*ttl)
		defer cancel()
		_ = l.Close(ctx) // a server that a test has stopped accepts no release
	})
	return clustertest.Instance{Membership: c, Registry: c, ConfigStore: cluster.Fixed{}, Locker: l}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// commands is how many commands of a kind the server has executed.
func commands(t testing.TB, rdb redis.UniversalClient, name string) int {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	check(t, err)
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
			digits, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(digits)
			check(t, err)
			return n
		}
	}
	return 0
}
