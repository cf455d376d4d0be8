package zookeeper_test

import (
	"strings"
	"testing"
	"time"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// next waits for the next event of a watch.
func next(tb testing.TB, events <-chan zookeeper.Event) zookeeper.Event {
	tb.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(time.Minute):
		tb.Fatal("the watch received nothing")
		return 0
	}
}

func TestWatches(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		s, other := connect(t, addr), connect(t, addr)
		p := zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1}
		n, err := other.CreateProtected(t.Context(), p)
		check(t, err)
		events := make(chan zookeeper.Event, 10)
		notify := func(e zookeeper.Event) { events <- e }
		watch := func() {
			t.Helper()
			_, _, _, err := s.GetW(t.Context(), n.Path, notify)
			check(t, err)
		}
		watch()
		_, err = other.Set(t.Context(), n.Path, []byte("new"), -1)
		check(t, err)
		if e := next(t, events); e != zookeeper.Changed {
			t.Errorf("changed: %v", e)
		}
		_, _, _, err = s.ChildrenW(t.Context(), p.Dir, notify)
		check(t, err)
		_, err = other.CreateProtected(t.Context(), p)
		check(t, err)
		if e := next(t, events); e != zookeeper.Changed {
			t.Errorf("one more child: %v", e)
		}
		watch()
		watch() // two notifications, by one watch of the server
		check(t, other.Delete(t.Context(), n.Path, -1))
		for range 2 {
			if e := next(t, events); e != zookeeper.Deleted {
				t.Errorf("deleted: %v", e)
			}
		}
		if len(events) != 0 {
			t.Errorf("notified %d times more", len(events))
		}
	})
}

// TestWatchesOutliveConnections deletes a node while the session is connected again.
func TestWatchesOutliveConnections(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		proxy := testbedtest.StartProxy(t, addr)
		s, other := connect(t, proxy.Addr()), connect(t, addr)
		n, err := other.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1})
		check(t, err)
		events := make(chan zookeeper.Event, 1)
		_, _, stop, err := s.GetW(t.Context(), n.Path, func(e zookeeper.Event) { events <- e })
		check(t, err)
		defer stop()
		for range 3 {
			proxy.Refuse()
			testbedtest.Eventually(t, "disconnection", func() bool { return s.State() == zookeeper.Disconnected })
			check(t, proxy.Pass())
			testbedtest.Eventually(t, "connection", func() bool { return s.Sync(t.Context()) == nil })
		}
		check(t, other.Delete(t.Context(), n.Path, -1))
		if e := next(t, events); e != zookeeper.Deleted {
			t.Errorf("deleted: %v", e)
		}
	})
}

// TestStoppedWatchesDoNotPileUp watches a node again and again.
func TestStoppedWatchesDoNotPileUp(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		s := connect(t, server.Addr())
		n, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1})
		check(t, err)
		late := make(chan zookeeper.Event, 1)
		for range 100 {
			_, _, stop, err := s.GetW(t.Context(), n.Path, func(e zookeeper.Event) { late <- e })
			check(t, err)
			stop()
		}
		total := func() string {
			answer, err := server.Ask(t.Context(), "wchs")
			check(t, err)
			_, count, _ := strings.Cut(answer, "Total watches:")
			return strings.TrimSpace(count)
		}
		if got := total(); got != "1" {
			t.Errorf("%s watches for one node", got)
		}
		check(t, s.Delete(t.Context(), n.Path, -1))
		testbedtest.Eventually(t, "end of the watch", func() bool { return total() == "0" })
		if len(late) != 0 {
			t.Error("a watch that was stopped is notified")
		}
	})
}
