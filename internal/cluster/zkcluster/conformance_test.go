package zkcluster_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/cluster/clustertest"
	"example.com/shop/internal/cluster/zkcluster"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// ttl is the timeout of the sessions of the tests. Four ticks of the server would do,
// which are 0.8 s, but a busy machine must not lose the terms of leaders.
const ttl = 3 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestCluster(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	clustertest.Run(t, harness(t, addr))
}

func TestConfig(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	clustertest.RunConfig(t, harness(t, addr))
}

// harness is for a store that has the servers at addrs.
func harness(t testing.TB, addrs ...string) clustertest.Harness {
	t.Helper()
	return clustertest.Harness{
		New: func(t testing.TB, group string, onError func(error)) clustertest.Instance {
			return instance(t, session(t, addrs...), group, onError)
		},
		TTL:  ttl,
		Seen: 500 * time.Millisecond,
		Waiting: func(t testing.TB, group string) func() int {
			l := locker(t, session(t, addrs...))
			return func() int {
				state, err := l.Inspect(t.Context(), "election:"+group)
				check(t, err)
				return state.Waiters
			}
		},
		Depose: func(t testing.TB, group string) {
			check(t, locker(t, session(t, addrs...)).ForceRelease(t.Context(), "election:"+group))
		},
		Behind: func(t testing.TB, group string) (clustertest.Instance, clustertest.Link) {
			proxy := testbedtest.StartProxy(t, addrs[0])
			return instance(t, session(t, proxy.Addr()), group, func(error) {}), clustertest.Link{
				Cut: proxy.BlackHole,
				Heal: func() {
					if err := proxy.Pass(); err != nil {
						t.Error(err)
					}
				},
				LoseJoin:  func() { proxy.DropReply("/members/") },
				LoseWrite: func() { proxy.DropReply("/config/") },
				Lost:      proxy.Dropped,
			}
		},
		Expire: func(t testing.TB, group, name string) {
			c := raw(t, addrs[0])
			dir := prefix(group) + "/members"
			for _, node := range children(t, c, dir) {
				if strings.Contains(node, ";"+name+";") {
					check(t, c.Delete(dir+"/"+node, -1))
				}
			}
		},
		Stray: func(t testing.TB, group string) int { return strays(t, raw(t, addrs[0]), prefix(group)+"/members") },
		Poke: func(t testing.TB, group, name, text string) {
			_, err := raw(t, addrs[0]).Set(prefix(group)+"/config/"+name, []byte(text), -1)
			check(t, err)
		},
		Unset: func(t testing.TB, group, name string) {
			check(t, raw(t, addrs[0]).Delete(prefix(group)+"/config/"+name, -1))
		},
		Process: func(_ testing.TB, group string) (string, []string) {
			return "TestInstance", []string{serverVariable + "=" + strings.Join(addrs, ","), groupVariable + "=" + group}
		},
	}
}

const (
	serverVariable = "SHOP_TEST_ZKCLUSTER_SERVER"
	groupVariable  = "SHOP_TEST_ZKCLUSTER_GROUP"
)

// TestInstance is no test: the conformance tests run it in processes of their own.
func TestInstance(t *testing.T) {
	clustertest.Serve(t, func(t testing.TB) (clustertest.Instance, string) {
		group := os.Getenv(groupVariable)
		return instance(t, session(t, strings.Split(os.Getenv(serverVariable), ",")...), group, func(error) {}), group
	})
}

// prefix is where the nodes of a group are.
func prefix(group string) string { return "/shop/" + group }

// session opens a session, as another process would.
func session(t testing.TB, addrs ...string) *zookeeper.Session {
	t.Helper()
	s, err := zookeeper.Connect(t.Context(), zookeeper.Config{Servers: addrs, Timeout: ttl})
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		check(t, s.Close(ctx))
	})
	return s
}

func instance(t testing.TB, s *zookeeper.Session, group string, onError func(error)) clustertest.Instance {
	t.Helper()
	c := store(t, s, group, onError)
	l := locker(t, s)
	return clustertest.Instance{Membership: c, ConfigStore: c, Elect: func(key, name string) (cluster.Election, error) {
		return zkcluster.NewElection(c, l, key, name)
	}}
}

// store returns what an instance has of the others.
func store(t testing.TB, s *zookeeper.Session, group string, onError func(error)) *zkcluster.Cluster {
	t.Helper()
	c, err := zkcluster.New(s, zkcluster.Config{Prefix: "/" + group, OnError: onError})
	check(t, err)
	return c
}

func locker(t testing.TB, s *zookeeper.Session) *zklock.Locker {
	t.Helper()
	l, err := zklock.New(s, zklock.Config{})
	check(t, err)
	return l
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw returns a client of ZooKeeper itself.
func raw(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, ttl, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	check(t, err)
	t.Cleanup(func() {
		c.Close()
		for range events { // until its goroutines have ended
			continue
		}
	})
	return c
}

type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

func children(t testing.TB, c *zk.Conn, path string) []string {
	t.Helper()
	names, _, err := c.Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

// strays creates nodes that are no entries, and returns how many.
func strays(t testing.TB, c *zk.Conn, dir string) int {
	t.Helper()
	names := []string{
		"config", "-", "-;0000000001", "x-a;b;c;0000000001", "x-i;name;addr;role;v;yesterday;0000000002", "x-i;name;addr;role;v;20260102T030405.000Z;99999999999",
		"x-i;;addr;role;v;20260102T030405.000Z;0000000001", "x-i;na%0ame;addr;role;v;20260102T030405.000Z;0000000001", "x-i;%zz;addr;role;v;20260102T030405.000Z;0000000001",
		"x-lease-0000000000", "x-i;name;addr;role;v;20260102T030405.000Z;",
	}
	for _, name := range names {
		_, err := c.Create(dir+"/"+name, []byte("data"), 0, zk.WorldACL(zk.PermAll))
		check(t, err)
	}
	return len(names)
}
