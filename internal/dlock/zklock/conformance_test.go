package zklock_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// ttl is the timeout of the sessions of the tests. A tenth of it, and a third, are
// times within which a busy machine must still get something done.
const ttl = 3 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestLocker(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	admin := locker(t, session(t, addr), zklock.Config{})
	with := func(cfg zklock.Config) func(t testing.TB) dlock.Locker {
		return func(t testing.TB) dlock.Locker {
			s := session(t, addr)
			return closing{locker(t, s, cfg), s}
		}
	}
	dlocktest.Run(t, dlocktest.Harness{
		New:          with(zklock.Config{}),
		TTL:          ttl,
		FIFO:         true,
		FallbackPoll: ttl / 6,
		Reentrant:    true,
		Expire: func(t testing.TB, key string) {
			if err := admin.ForceRelease(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		},
		Wipe:      func(t testing.TB, key string) { wipe(t, addr, "/shop/locks/"+url.PathEscape(key)) },
		Leftovers: func(t testing.TB, key string) []string { return children(t, addr, "/shop/locks/"+url.PathEscape(key)) },
		Answers:   answers,
		Foreign: func(t testing.TB, key string) {
			cycle(t, admin, key) // makes the queue
			node := "/shop/locks/" + url.PathEscape(key) + "/maintenance-lease-0000000000"
			if _, err := raw(t, addr).Create(node, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.Locker {
			return with(zklock.Config{MaxHold: limit})(t)
		},
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			s, link := behind(t, addr)
			return locker(t, s, zklock.Config{}), link
		},
	})
}

// answers are what a server, or the session, says of a request that has done nothing.
var answers = []error{zk.ErrNoNode, zk.ErrBadVersion, zookeeper.ErrUnavailable, zookeeper.ErrUncertain}

// closing is a Locker that is closed with its session.
type closing struct {
	*zklock.Locker
	s *zookeeper.Session
}

// Close ends the session.
func (c closing) Close(ctx context.Context) error { return c.s.Close(ctx) }

// session opens a session, as another process would.
func session(t testing.TB, addrs ...string) *zookeeper.Session {
	t.Helper()
	s, err := zookeeper.Connect(t.Context(), zookeeper.Config{Servers: addrs, Timeout: ttl})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, s.Close)
	return s
}

func locker(t testing.TB, s *zookeeper.Session, cfg zklock.Config) *zklock.Locker {
	t.Helper()
	l, err := zklock.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// behind returns a session whose connections go through a proxy.
func behind(t testing.TB, addr string) (*zookeeper.Session, dlocktest.Link) {
	t.Helper()
	proxy := testbedtest.StartProxy(t, addr)
	return session(t, proxy.Addr()), link(t, proxy)
}

// link is what a proxy can do. Replies are lost to requests that name a node of a queue.
func link(t testing.TB, proxy *testbed.Proxy) dlocktest.Link {
	t.Helper()
	return dlocktest.Link{
		Cut: proxy.BlackHole,
		Heal: func() {
			if err := proxy.Pass(); err != nil {
				t.Error(err)
			}
		},
		Refuse:    proxy.Refuse,
		LoseReply: func() { proxy.DropReply("-lease-") },
		Lost:      proxy.Dropped,
	}
}

// raw returns a client of ZooKeeper itself.
func raw(t testing.TB, addr string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, ttl, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
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

type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

func children(t testing.TB, addr, path string) []string {
	t.Helper()
	names, _, err := raw(t, addr).Children(path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
	return names
}

// wipe deletes a node and all below it.
func wipe(t testing.TB, addr, path string) {
	t.Helper()
	c := raw(t, addr)
	names, _, err := c.Children(path)
	if errors.Is(err, zk.ErrNoNode) { // the servers delete a queue that is empty
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := c.Delete(path+"/"+name, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
}

func cycle(t testing.TB, l dlock.Locker, key string) {
	t.Helper()
	if err := acquire(t, l, key).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// acquire waits for key, for a bounded time.
func acquire(t testing.TB, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	lease, err := patiently(t, l.Acquire, key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// patiently takes key, for a bounded time. A request may take too long, a few times:
// the machine is busy.
func patiently(t testing.TB, take func(context.Context, string) (*dlock.Lease, error), key string) (*dlock.Lease, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*ttl)
	defer cancel()
	for {
		lease, err := take(ctx, key)
		if err == nil || !errors.Is(err, dlock.ErrUncertain) || ctx.Err() != nil {
			return lease, err
		}
		t.Logf("Acquire = %v", err)
	}
}
