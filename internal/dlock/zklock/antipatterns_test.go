package zklock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The tests of this file run the wrong variant, the lock of the client library, alongside the right one. So they show
// that the trap is real, and that the test detects it.

// textbook returns the library's lock of a key of its own.
func textbook(t testing.TB, c *zk.Conn) (l *zk.Lock, path string) {
	t.Helper()
	path = "/trap-" + rand.Text()
	return zk.NewLock(c, path, zk.WorldACL(zk.PermAll)), path
}

// dir is where the nodes of key are.
func dir(key string) string { return "/shop/locks/" + key }

// getChildren is the beginning of a request for the children of path, and of none
// that merely contains path.
func getChildren(path string) string {
	return "\x00\x00\x00\x0c\x00\x00\x00" + string(rune(len(path))) + path
}

// TestLostReplyLeavesNoNode loses the answer to a request that comes after the
// creation of the node.
func TestLostReplyLeavesNoNode(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	t.Run("right", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			proxy := testbedtest.StartProxy(t, addr)
			l, key := locker(t, session(t, proxy.Addr()), zklock.Config{}), rand.Text()
			proxy.DropReply(getChildren(dir(key)))
			lease, err := l.Acquire(t.Context(), key)
			if err != nil && !errors.Is(err, dlock.ErrUncertain) { // the answer to the creation is lost with it, or not
				t.Fatal(err)
			}
			if proxy.Dropped() != 1 {
				t.Fatal("no answer was lost, so the test proves nothing")
			}
			if err == nil {
				if n := len(children(t, addr, dir(key))); n != 1 {
					t.Errorf("%d nodes", n)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			testbedtest.Eventually(t, "end of the node", func() bool { return len(children(t, addr, dir(key))) == 0 })
		})
	})
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			proxy := testbedtest.StartProxy(t, addr)
			l, path := textbook(t, raw(t, proxy.Addr()))
			proxy.DropReply(getChildren(path))
			if err := l.Lock(); !errors.Is(err, zk.ErrConnectionClosed) || proxy.Dropped() != 1 {
				t.Fatalf("Lock = %v, %d answers lost", err, proxy.Dropped())
			}
			if n := len(children(t, addr, path)); n != 1 {
				t.Errorf("%d nodes: the trap is gone", n)
			}
		})
	})
}

// TestForeignChildrenAreTolerated puts a node into the queue that is none of it.
func TestForeignChildrenAreTolerated(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c := raw(t, addr)
		foreign := func(path string) {
			for _, name := range []string{"config", "a-lease-x", "a-lease-99999999999", "-lease-0000000001", "b-other-0000000000"} {
				if _, err := c.Create(path+"/"+name, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
					t.Fatal(err)
				}
			}
		}
		l, key := locker(t, session(t, addr), zklock.Config{}), rand.Text()
		held := acquire(t, l, key) // the servers delete a queue that is empty
		foreign(dir(key))
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		cycle(t, l, key)
		if lease, err := l.TryAcquire(t.Context(), key); err != nil {
			t.Error(err)
		} else if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}

		wrong, path := textbook(t, c)
		if err := errors.Join(wrong.Lock(), wrong.Unlock()); err != nil {
			t.Fatal(err)
		}
		foreign(path)
		if err := wrong.Lock(); err == nil {
			t.Error("Lock has succeeded: the trap is gone")
		}
	})
}

// TestHolderIsNotifiedOfThePartition cuts a holder off. The session is notified that it has
// expired only when it is connected again, long after the next holder.
func TestHolderIsNotifiedOfThePartition(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		proxy := testbedtest.StartProxy(t, addr)
		far, near := raw(t, proxy.Addr()), raw(t, addr)
		wrong, path := textbook(t, far)
		right, key := locker(t, session(t, proxy.Addr()), zklock.Config{}), rand.Text()
		next := locker(t, session(t, addr), zklock.Config{})
		if err := wrong.Lock(); err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, right, key)

		proxy.BlackHole()
		second := acquire(t, next, key)
		if !errors.Is(lease.Err(), dlock.ErrLost) {
			t.Errorf("granted to another, and the holder is notified of %v", lease.Err())
		}
		if err := zk.NewLock(near, path, zk.WorldACL(zk.PermAll)).Lock(); err != nil {
			t.Fatal(err)
		}
		if s := far.State(); s == zk.StateExpired {
			t.Error("the session that is cut off knows that it has expired: the trap is gone")
		}
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		var err error
		for end := time.Now().Add(10 * ttl); ; { // until it is connected again
			if err = wrong.Unlock(); errors.Is(err, zk.ErrNoNode) || time.Now().After(end) {
				break
			}
		}
		if !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("Unlock of a lock that was lost: %v", err)
		}
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestServerThatIsNotReady: a server accepts connections before it serves. The
// library gives up with its first attempt to connect.
func TestServerThatIsNotReady(t *testing.T) {
	t.Parallel()
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			proxy := testbedtest.StartProxy(t, "127.0.0.1:1") // it accepts connections, and ends them
			wrong, _ := textbook(t, raw(t, proxy.Addr()))
			if err := wrong.Lock(); !errors.Is(err, zk.ErrNoServer) {
				t.Errorf("Lock = %v: it waits for the server, so the trap is gone", err)
			}
		})
	})
	t.Run("right", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
			l, key := locker(t, session(t, testbedtest.StartProxy(t, server.Addr()).Addr()), zklock.Config{}), rand.Text()
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- server.Restart(ctx) }()
			for { // each attempt ends in bounded time, and one of them gets the key
				start := time.Now()
				lease, err := l.Acquire(ctx, key)
				if d := time.Since(start); d > 2*ttl {
					t.Errorf("an attempt without a server took %v", d)
				}
				if err == nil {
					if err := lease.Release(ctx); err != nil {
						t.Error(err)
					}
					break
				}
				if ctx.Err() != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestEmptyServerStartsLowFences: a server that has lost its data counts from the
// beginning. Former holders are notified, and the new fencing tokens are low: a resource
// refuses them.
func TestEmptyServerStartsLowFences(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		old, key := locker(t, session(t, server.Addr()), zklock.Config{}), rand.Text()
		for range 20 {
			cycle(t, old, key)
		}
		before := acquire(t, old, key)
		if err := server.RestartEmpty(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := acquire(t, locker(t, session(t, server.Addr()), zklock.Config{}), key)
		if after.Fence().Token >= before.Fence().Token { // many attempts use up many transactions
			t.Errorf("fence %v follows %v", after.Fence(), before.Fence())
		} else if after.Fence().Passes(before.Fence()) {
			testbedtest.Final(t, "fence %v follows %v: it passes a resource", after.Fence(), before.Fence())
		}
		select {
		case <-before.Done():
		case <-time.After(3 * ttl):
			t.Error("the former holder is not notified")
		}
		if err := after.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(time.Minute); ; { // the earlier client is served again
			lease, err := old.TryAcquire(t.Context(), key)
			if err == nil {
				_ = lease.Release(t.Context())
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	})
}
