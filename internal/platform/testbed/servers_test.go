package testbed_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// maxWait is how long a client waits for a server that should not answer.
const maxWait = 150 * time.Millisecond

// server is what the servers of all kinds have.
type server interface {
	Addr() string
	Pause() error
	Resume() error
	Kill() error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
}

// kind is a way to start a server. A new client puts a fact there, and another one finds it.
type kind struct {
	start    func(t testing.TB) server
	put      func(t testing.TB, addr string) error
	has      func(t testing.TB, addr string) (bool, error)
	survives bool // a restart
}

// kinds are those of all servers.
func kinds() map[string]kind {
	redisKind := func(cfg testbed.RedisConfig) kind {
		return kind{
			func(t testing.TB) server { return testbedtest.StartRedis(t, cfg) },
			func(t testing.TB, addr string) error { return newClient(t, addr).Set(t.Context(), "k", "v", 0).Err() },
			func(t testing.TB, addr string) (bool, error) {
				n, err := newClient(t, addr).Exists(t.Context(), "k").Result()
				return n > 0, err
			},
			cfg.AppendOnly,
		}
	}
	return map[string]kind{
		"redis":             redisKind(testbed.RedisConfig{}),
		"append-only redis": redisKind(testbed.RedisConfig{AppendOnly: true}),
		"mariadb": {
			func(t testing.TB) server { return testbedtest.StartMariaDB(t, testbed.MariaDBConfig{}) },
			func(t testing.TB, addr string) error {
				_, err := testbedtest.OpenSQL(t, urlOf(addr)).ExecContext(t.Context(), "CREATE TABLE k (v INT)")
				return err
			},
			func(t testing.TB, addr string) (bool, error) {
				_, err := testbedtest.OpenSQL(t, urlOf(addr)).ExecContext(t.Context(), "SELECT v FROM k")
				if missing, ok := errors.AsType[*mysql.MySQLError](err); ok && missing.Number == 1146 {
					return false, nil
				}
				return err == nil, err
			},
			true,
		},
		"zookeeper": {
			func(t testing.TB) server { return testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}) },
			func(t testing.TB, addr string) error {
				_, err := zooKeeper(t, addr).Create("/k", nil, 0, zk.WorldACL(zk.PermAll))
				return err
			},
			func(t testing.TB, addr string) (bool, error) {
				found, _, err := zooKeeper(t, addr).Exists("/k")
				return found, err
			},
			true,
		},
		"etcd": {
			func(t testing.TB) server { return testbedtest.StartEtcd(t, testbed.EtcdConfig{}) },
			func(t testing.TB, addr string) error {
				_, err := etcdClient(t, addr).Put(t.Context(), "k", "v")
				return err
			},
			func(t testing.TB, addr string) (bool, error) {
				got, err := etcdClient(t, addr).Get(t.Context(), "k")
				return err == nil && got.Count > 0, err
			},
			true,
		},
	}
}

func urlOf(addr string) string { return "mysql://root@" + addr + "/" + testbed.DefaultDatabase }

// newClient returns a client that reports every failure instead of retrying.
func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// quiet is a logger of a client.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

func zooKeeper(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 2*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for range events { // until its goroutines have ended
			continue
		}
	})
	return c
}

func etcdClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A server of each kind is paused, killed, restarted and emptied. It is the former one each time, with its data or
// without, and never another server that has its address.
func TestServers(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				s := k.start(t)
				do(t, k.put(t, s.Addr()), s.Pause(), s.Pause())
				if k.answers(t, s, maxWait) {
					t.Error("a paused server answers")
				}
				do(t, s.Resume(), s.Resume())
				k.want(t, s, true)
				do(t, s.Kill(), s.Kill())
				if k.answers(t, s, maxWait) {
					t.Error("a killed server answers")
				}
				for range 2 { // from killed and from running
					do(t, s.Restart(t.Context()))
					k.want(t, s, k.survives)
				}
				if emptied, ok := s.(interface {
					RestartEmpty(ctx context.Context) error
				}); ok {
					do(t, emptied.RestartEmpty(t.Context()))
					k.want(t, s, false)
				}
				k.isNotMistaken(t, s)
			})
		})
	}
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// answers reports whether the server does in time.
func (k kind) answers(t testing.TB, s server, limit time.Duration) bool {
	t.Helper()
	answered := make(chan error, 1)
	go func() {
		_, err := k.has(t, s.Addr())
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(limit):
		return false
	}
}

func (k kind) want(t testing.TB, s server, there bool) {
	t.Helper()
	if found, err := k.has(t, s.Addr()); found != there || err != nil {
		t.Errorf("the server has the data: %v, %v, want %v", found, err, there)
	}
}

// isNotMistaken has another server of the same kind answer at the address of s.
func (k kind) isNotMistaken(t testing.TB, s server) {
	t.Helper()
	other := k.start(t)
	do(t, s.Stop(t.Context()))
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", s.Addr())
	do(t, err)
	defer taken.Close()
	go func() {
		for {
			near, err := taken.Accept()
			if err != nil {
				return
			}
			if far, err := net.Dial("tcp", other.Addr()); err == nil {
				go func() { _, _ = io.Copy(far, near); far.Close() }()
				go func() { _, _ = io.Copy(near, far); near.Close() }()
			}
		}
	}()
	if err := s.Restart(t.Context()); err == nil {
		t.Error("the server that has the port was taken for ours")
	}
	if err := s.Pause(); !errors.Is(err, testbed.ErrNotRunning) {
		t.Errorf("pause: got %v, want %v", err, testbed.ErrNotRunning)
	}
}

// After the master was killed, another one has its role, and the killed one follows it when it is back: behind
// sentinels, and in a cluster. Without a failover, the wait for one ends with its context.
func TestFailover(t *testing.T) {
	t.Parallel()
	type group interface {
		WaitForFailover(ctx context.Context, old *testbed.Redis) error
		WaitReady(ctx context.Context) error
	}
	for name, start := range map[string]func(t testing.TB) (g group, master func(ctx context.Context) (*testbed.Redis, error), c redis.UniversalClient){
		"sentinel": func(t testing.TB) (group, func(ctx context.Context) (*testbed.Redis, error), redis.UniversalClient) {
			s := testbedtest.StartSentinel(t)
			return s, s.Master, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.MasterName(), SentinelAddrs: s.SentinelAddrs(), ContextTimeoutEnabled: true})
		},
		"cluster": func(t testing.TB) (group, func(ctx context.Context) (*testbed.Redis, error), redis.UniversalClient) {
			c := testbedtest.StartCluster(t)
			of := func(ctx context.Context) (*testbed.Redis, error) { return c.MasterOf(ctx, "k") }
			return groupOf{c}, of, redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: true, ClusterStateReloadInterval: 500 * time.Millisecond})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				g, master, c := start(t)
				defer c.Close()
				for _, value := range []string{"first", "and back"} { // what has been restarted must be able to take over
					old, err := master(t.Context())
					do(t, err)
					soon, cancel := context.WithTimeout(t.Context(), maxWait)
					if err := g.WaitForFailover(soon, old); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a failover without a fault: %v", err)
					}
					cancel()
					do(t, old.Kill(), g.WaitForFailover(t.Context(), old))
					if next, err := master(t.Context()); next == old || err != nil {
						t.Errorf("the master is still the killed one: %v", err)
					}
					testbedtest.Eventually(t, "a write", func() bool { return c.Set(t.Context(), "k", value, 0).Err() == nil })
					do(t, old.Restart(t.Context()), g.WaitReady(t.Context()))
				}
			})
		})
	}
}

// groupOf is a cluster of whose key k the master is replaced.
type groupOf struct{ *testbed.Cluster }

func (c groupOf) WaitForFailover(ctx context.Context, old *testbed.Redis) error {
	return c.Cluster.WaitForFailover(ctx, "k", old)
}
