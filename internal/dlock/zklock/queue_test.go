package zklock_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/zklock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// waiters waits until n wait for key.
func waiters(t testing.TB, in dlock.Inspector, key string, n int) {
	t.Helper()
	testbedtest.Eventually(t, "queue of that length", func() bool {
		state, err := in.Inspect(t.Context(), key)
		return err == nil && state.Waiters == n
	})
}

// Waiters whose session has not been confirmed for a while confirm it by one commit, and not by
// one each, however long that takes.
func TestWaitersShareAConfirmation(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const n = 100
		addr := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}).Addr()
		admin, key := raw(t, addr), rand.Text()
		holder := locker(t, session(t, addr), zklock.Config{})
		acquire(t, holder, key)
		s, link := behind(t, addr)
		l := locker(t, s, zklock.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		for range n {
			waiting.Go(func() { l.Acquire(ctx, key) })
		}
		waiters(t, holder, key, n)
		commits := func() int64 {
			stat, err := admin.Set("/shop", nil, -1)
			if err != nil {
				t.Fatal(err)
			}
			return stat.Mzxid
		}
		before := commits()
		link.Cut()
		<-time.After(ttl / 3) // all have polled by then, and have had no answer
		link.Heal()
		if err := s.Sync(t.Context()); err != nil { // follows all their requests
			t.Fatal(err)
		}
		if more := commits() - before; more > n/10 {
			t.Errorf("%d waiters have caused %d commits", n, more)
		} else {
			t.Logf("%d waiters have caused %d commits", n, more)
		}
	})
}

// TestNumbersWrapAround: after 2^31 nodes ZooKeeper continues with the least number.
func TestNumbersWrapAround(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		c := raw(t, addr)
		l, key := locker(t, session(t, addr), zklock.Config{}), rand.Text()
		lease := acquire(t, l, key) // the servers delete a queue that is empty
		for _, name := range []string{"last-lease--2147483647", "middle-lease--2147483648", "first-lease-2147483647"} {
			if _, err := c.Create(dir(key)+"/"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"first", "middle", "last"} {
			state, err := l.Inspect(t.Context(), key)
			if err != nil || state.Fence.Owner != want {
				t.Errorf("holder %q, %v, want %q", state.Fence.Owner, err, want)
			}
			if err := l.ForceRelease(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestLeavingWaiterGrantsNothing has the second of three nodes leave the queue. The third is notified that the node
// before its own is gone, while the first still holds the key.
func TestLeavingWaiterGrantsNothing(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		l, key := locker(t, session(t, addr), zklock.Config{}), rand.Text()
		holder := acquire(t, l, key)
		middle := locker(t, session(t, addr), zklock.Config{})
		short, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := middle.Acquire(short, key)
			left <- err
		}()
		waiters(t, l, key, 1)
		granted := make(chan *dlock.Lease, 1)
		last := locker(t, session(t, addr), zklock.Config{})
		go func() {
			lease, err := patiently(t, last.Acquire, key)
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		waiters(t, l, key, 2)
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire = %v", err)
		}
		waiters(t, l, key, 1)
		select {
		case <-granted:
			t.Fatal("two hold the key")
		case <-time.After(ttl / 5): // long after the message
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := (<-granted).Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestUncontendedKeyIsHeldOnce has a process use a key alone, so that it takes the short
// way, and then want it twice.
func TestUncontendedKeyIsHeldOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l, key := locker(t, session(t, testbedtest.ZooKeeper(t)), zklock.Config{}), rand.Text()
		for range 3 {
			cycle(t, l, key)
		}
		holder := acquire(t, l, key)
		short, cancel := context.WithTimeout(t.Context(), ttl/5)
		defer cancel()
		if _, err := l.Acquire(short, key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of a key that is held: %v", err)
		}
		if err := holder.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		cycle(t, l, key)
	})
}

// TestReleaseWithoutAServer is made up for, as the session continues.
func TestReleaseWithoutAServer(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		l, key := locker(t, session(t, server.Addr()), zklock.Config{}), rand.Text()
		holder := acquire(t, l, key)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := holder.Release(t.Context()); err == nil {
			t.Error("a server that is dead has answered")
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, locker(t, session(t, server.Addr()), zklock.Config{}), key)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestHandOffWithinAProcess needs no server: the node of the next holder keeps all
// others out already.
func TestHandOffWithinAProcess(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		proxy := testbedtest.StartProxy(t, server.Addr())
		l, key := locker(t, session(t, proxy.Addr()), zklock.Config{}), rand.Text()
		near := locker(t, session(t, server.Addr()), zklock.Config{})
		first := acquire(t, l, key)
		granted := make(chan *dlock.Lease, 1)
		go func() {
			lease, err := patiently(t, l.Acquire, key)
			if err != nil {
				t.Error(err)
			}
			granted <- lease
		}()
		testbedtest.Eventually(t, "watches of the waiter", func() bool {
			watched, err := server.Ask(t.Context(), "wchp")
			return err == nil && strings.Count(watched, "-lease-") == 2 // its own node, and the one before
		})
		waiters(t, l, key, 1) // a round trip later
		proxy.BlackHole()
		released := make(chan error, 1)
		start := time.Now()
		go func() { released <- first.Release(t.Context()) }()
		second := <-granted
		if d := time.Since(start); d > ttl/4 {
			t.Errorf("the hand-off took %v", d)
		}
		if !second.Fence().Passes(first.Fence()) {
			testbedtest.Final(t, "fence %v follows %v", second.Fence(), first.Fence())
		}
		if _, err := near.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire of another process = %v", err)
		}
		if err := proxy.Pass(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-released, second.Release(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitersLeaveNoWatch has a crowd give up, each at a moment of its own.
func TestWaitersLeaveNoWatch(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		near := locker(t, session(t, server.Addr()), zklock.Config{})
		key := rand.Text()
		holder := acquire(t, near, key)
		lockers := []*zklock.Locker{locker(t, session(t, server.Addr()), zklock.Config{}), locker(t, session(t, server.Addr()), zklock.Config{})}
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				short, cancel := context.WithTimeout(t.Context(), mathrand.N(ttl/2))
				defer cancel()
				lease, err := lockers[i%2].Acquire(short, key)
				if err == nil {
					if holder.Err() == nil {
						t.Error("two hold the key")
					}
					lease.Release(t.Context())
				}
			})
		}
		wg.Wait()
		waiters(t, near, key, 0)
		if err := holder.Release(t.Context()); err != nil && !errors.Is(err, dlock.ErrLost) { // a thousand on a busy machine
			t.Fatal(err)
		}
		testbedtest.Eventually(t, "end of nodes and watches", func() bool {
			left, err := server.Ask(t.Context(), "wchs")
			return err == nil && strings.Contains(left, "Total watches:0") && len(children(t, server.Addr(), dir(key))) == 0
		})
	})
}
