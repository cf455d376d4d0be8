package zookeeper_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// dir is a path that no other test uses.
func dir(t interface{ Name() string }) string { return "/" + t.Name() + "-" + rand.Text() }

// names are the children of path, and none if it does not exist.
func names(tb testing.TB, s *zookeeper.Session, path string) []string {
	tb.Helper()
	all, _, err := s.Children(tb.Context(), path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		tb.Fatal(err)
	}
	return all
}

func TestCreateProtected(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := connect(t, testbedtest.ZooKeeper(t))
		p := zookeeper.Protected{Dir: dir(t) + "/deep", Label: "x-", Data: []byte("data"), ParentVersion: -1}
		n, err := s.CreateProtected(t.Context(), p)
		check(t, err)
		data, stat, err := s.Get(t.Context(), n.Path)
		check(t, err)
		if string(data) != "data" || uint64(stat.Czxid) != n.Zxid || !strings.HasPrefix(n.Name(), n.ID+"-x-") {
			t.Errorf("node %+v with data %q and czxid %d", n, data, stat.Czxid)
		}
		_, parent, err := s.Children(t.Context(), p.Dir)
		check(t, err)
		if parent.Version != n.Version {
			t.Errorf("the parent has version %d, want %d", parent.Version, n.Version)
		}
		p.ParentVersion = n.Version
		_, err = s.CreateProtected(t.Context(), p)
		check(t, err)
		_, err = s.CreateProtected(t.Context(), p) // the one before has changed it
		wantErr(t, err, zk.ErrBadVersion)
		if got := names(t, s, p.Dir); len(got) != 2 {
			t.Errorf("children %v", got)
		}
	})
}

// TestLostReplyLeavesNoOrphan loses the reply to a creation. The plain request leaves
// a node that nobody knows of, for as long as the session lives.
func TestLostReplyLeavesNoOrphan(t *testing.T) {
	t.Parallel()
	addr := testbedtest.ZooKeeper(t)
	near := connect(t, addr)
	for _, tt := range []struct {
		name   string
		create func(t testing.TB, addr, dir string, lose func()) error
		want   int
	}{
		{"protected", func(t testing.TB, addr, dir string, lose func()) error {
			t.Helper()
			s := connect(t, addr)
			lose()
			_, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir, Label: "x-", ParentVersion: -1})
			wantErr(t, err, zookeeper.ErrUncertain)
			testbedtest.Eventually(t, "connection", func() bool { return s.Sync(t.Context()) == nil })
			return err
		}, 0},
		{"plain", func(t testing.TB, addr, dir string, lose func()) error {
			t.Helper()
			c := plain(t, addr)
			lose()
			_, err := c.Create("/shop"+dir+"/x-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
			wantErr(t, err, zk.ErrConnectionClosed)
			testbedtest.Eventually(t, "connection", func() bool { _, _, err := c.Exists("/"); return err == nil })
			return err
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				proxy := testbedtest.StartProxy(t, addr)
				dir := dir(t)
				check(t, near.EnsureContainer(t.Context(), dir))
				_ = tt.create(t, proxy.Addr(), dir, func() { proxy.DropReply("x-") })
				if proxy.Dropped() != 1 {
					t.Fatal("no reply was lost, so the test proves nothing")
				}
				if tt.want == 0 {
					testbedtest.Eventually(t, "end of the orphan", func() bool { return len(names(t, near, dir)) == 0 })
				} else if got := names(t, near, dir); len(got) != tt.want {
					t.Errorf("children %v: the trap is gone", got)
				}
			})
		})
	}
}

// plain returns the client that a session is made of.
func plain(tb testing.TB, addr string) *zk.Conn {
	tb.Helper()
	c, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	check(tb, err)
	tb.Cleanup(func() {
		c.Close()
		for range events { // until its goroutines have ended
			continue
		}
	})
	_, _, err = c.Exists("/")
	check(tb, err)
	return c
}

type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

// TestLateCreationIsUndone has a request executed after its caller has left.
func TestLateCreationIsUndone(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		proxy := testbedtest.StartProxy(t, addr)
		s, near := connect(t, proxy.Addr()), connect(t, addr)
		p := zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1}
		check(t, s.EnsureContainer(t.Context(), p.Dir))
		_, before, err := near.Children(t.Context(), p.Dir)
		check(t, err)
		proxy.BlackHole()
		err = cutShort(t, func(short context.Context) error {
			_, err := s.CreateProtected(short, p)
			return err
		})
		wantErr(t, err, zookeeper.ErrUncertain, context.DeadlineExceeded)
		check(t, proxy.Pass())
		testbedtest.Eventually(t, "late creation", func() bool {
			_, stat, err := near.Children(t.Context(), p.Dir)
			return err == nil && stat.Version > before.Version && stat.NumChildren == 0
		})
	})
}

// TestDeleteLater deletes while no server answers.
func TestDeleteLater(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		s := connect(t, server.Addr())
		p := zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1}
		var paths []string
		for range 100 {
			n, err := s.CreateProtected(t.Context(), p)
			check(t, err)
			paths = append(paths, n.Path)
		}
		check(t, server.Kill())
		for _, path := range append(paths, p.Dir+"/missing") {
			s.DeleteLater(path)
		}
		testbedtest.Eventually(t, "disconnection", func() bool { return s.State() == zookeeper.Disconnected })
		wantErr(t, s.Sync(t.Context()), zookeeper.ErrUnavailable) // as long as the first attempts take
		check(t, server.Restart(t.Context()))
		near := connect(t, server.Addr())
		testbedtest.Eventually(t, "end of the nodes", func() bool { return len(names(t, near, p.Dir)) == 0 })
	})
}

func TestRetire(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		s := connect(t, testbedtest.ZooKeeper(t))
		d := dir(t)
		n, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: d, Label: "x-", ParentVersion: -1})
		check(t, err)
		events := make(chan zookeeper.Event, 4)
		_, _, stop, err := s.GetW(t.Context(), n.Path, func(e zookeeper.Event) { events <- e })
		check(t, err)
		defer stop()
		check(t, s.Retire(t.Context(), n.Path, []byte("over")))
		if e := <-events; e != zookeeper.Changed {
			t.Errorf("the watch reports %v first, want the change", e)
		}
		wantErr(t, s.Retire(t.Context(), n.Path, nil), zk.ErrNoNode)
		start := time.Now()
		stat, err := s.Set(t.Context(), d, nil, -1)
		check(t, err)
		if _, err := s.Set(t.Context(), d, nil, stat.Version-1); !errors.Is(err, zk.ErrBadVersion) {
			t.Errorf("another version: %v", err)
		}
		if s.Confirmed().Before(start) {
			t.Error("a write does not confirm the session")
		}
	})
}

// TestCreateStays makes a node below containers that are missing. It outlives its session.
func TestCreateStays(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		s, near := connect(t, addr), connect(t, addr)
		path := dir(t) + "/deep/node"
		start := time.Now()
		check(t, s.Create(t.Context(), path, []byte("data")))
		if s.Confirmed().Before(start) {
			t.Error("a creation does not confirm the session")
		}
		wantErr(t, s.Create(t.Context(), path, []byte("other")), zk.ErrNodeExists)
		closeInTime(t, s)
		data, stat, err := near.Get(t.Context(), path)
		check(t, err)
		if string(data) != "data" || stat.Version != 0 || stat.EphemeralOwner != 0 {
			t.Errorf("data %q, stat %+v", data, stat)
		}
	})
}
