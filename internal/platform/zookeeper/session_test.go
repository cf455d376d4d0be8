package zookeeper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// timeout is that of the sessions of the tests.
const timeout = 2 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

// connect opens a session, as another process would.
func connect(tb testing.TB, addrs ...string) *zookeeper.Session {
	tb.Helper()
	s, err := zookeeper.Connect(tb.Context(), zookeeper.Config{Servers: addrs, Timeout: timeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeInTime(tb, s) })
	return s
}

func closeInTime(tb testing.TB, s *zookeeper.Session) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		tb.Error(err)
	}
}

// cutShort calls f with a context that ends while f waits for a silent server. On a busy machine the context may end
// before anything is sent, and cutShort calls f again.
func cutShort(tb testing.TB, f func(ctx context.Context) error) (err error) {
	tb.Helper()
	for range 5 {
		ctx, cancel := context.WithTimeout(tb.Context(), timeout/20)
		err = f(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, zookeeper.ErrUncertain) {
			break
		}
	}
	return err
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantErr(tb testing.TB, got error, wants ...error) {
	tb.Helper()
	for _, want := range wants {
		if !errors.Is(got, want) {
			tb.Fatalf("error = %v, want %v", got, want)
		}
	}
}

// states records the states that a session reports.
type states struct {
	mu  sync.Mutex
	all []zookeeper.State
}

func (s *states) add(one zookeeper.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
}

func (s *states) now() []zookeeper.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// A session that is cut off reports at once that it is disconnected. It reports its end only when it is connected
// again.
func TestExpiryIsReportedWhenConnectedAgain(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		proxy := testbedtest.StartProxy(t, addr)
		s, near := connect(t, proxy.Addr()), connect(t, addr)
		var reported states
		defer s.OnState(reported.add)()
		var ended states
		n, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1})
		check(t, err)
		_, _, stop, err := s.GetW(t.Context(), n.Path, func(e zookeeper.Event) { ended.add(zookeeper.State(e)) })
		check(t, err)
		defer stop()
		before := s.Epoch()
		if s.Confirmed().IsZero() || s.State() != zookeeper.Connected {
			t.Error("a session that was never confirmed")
		}

		proxy.BlackHole()
		testbedtest.Eventually(t, "end of the node", func() bool {
			_, _, err := near.Get(t.Context(), n.Path)
			return errors.Is(err, zk.ErrNoNode)
		})
		testbedtest.Eventually(t, "disconnection", func() bool { return len(reported.now()) > 0 })
		if got := reported.now(); !cmp.Equal(got, []zookeeper.State{zookeeper.Disconnected}) {
			t.Errorf("cut off: reported %v", got)
		}
		check(t, proxy.Pass())
		want := []zookeeper.State{zookeeper.Disconnected, zookeeper.Expired, zookeeper.Connected}
		testbedtest.Eventually(t, "new session", func() bool { return len(reported.now()) >= len(want) })
		if diff := cmp.Diff(want, reported.now()); diff != "" {
			t.Error(diff)
		}
		if s.Epoch() == before {
			t.Error("the epoch of a session that is over goes on")
		}
		if got := ended.now(); len(got) != 1 || got[0] != zookeeper.State(zookeeper.Ended) {
			t.Errorf("the watch received %v", got)
		}
	})
}

// TestRequestsEnd has requests end with their contexts and in bounded time.
func TestRequestsEnd(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		s := connect(t, server.Addr())
		dead, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		cancel(reason)
		err := s.Sync(dead)
		if wantErr(t, err, context.Canceled); errors.Is(err, reason) { // it could look like an answer
			t.Errorf("%v has the cause of the context", err)
		}

		check(t, s.Sync(t.Context())) // from now on it is a while until the silence is noticed
		check(t, server.Pause())
		var start time.Time
		err = cutShort(t, func(short context.Context) error {
			start = time.Now()
			return s.Sync(short)
		})
		wantErr(t, err, zookeeper.ErrUncertain, context.DeadlineExceeded)
		if d := time.Since(start); d > timeout/2 {
			t.Errorf("a request took %v after the end of its context", d)
		}
		start = time.Now()
		wantErr(t, s.Sync(t.Context()), zookeeper.ErrUncertain)
		testbedtest.Eventually(t, "disconnection", func() bool { return s.State() == zookeeper.Disconnected })
		wantErr(t, s.Sync(t.Context()), zookeeper.ErrUnavailable)
		if d := time.Since(start); d > 4*timeout {
			t.Errorf("without a server a request took %v", d)
		}
		check(t, server.Resume())
		testbedtest.Eventually(t, "answer", func() bool { return s.Sync(t.Context()) == nil })

		closeInTime(t, s)
		wantErr(t, s.Sync(t.Context()), zookeeper.ErrClosed)
	})
}

func TestConnectNamesTheServers(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout/10)
		defer cancel()
		_, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{"127.0.0.1:1", "localhost:2"}})
		wantErr(t, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "127.0.0.1:1,localhost:2") {
			t.Errorf("error = %v", err)
		}
		for _, cfg := range []zookeeper.Config{{}, {Servers: []string{"127.0.0.1:1"}, Root: "shop"}} {
			if _, err := zookeeper.Connect(ctx, cfg); err == nil {
				t.Errorf("%+v is accepted", cfg)
			}
		}
	})
}

// TestCloseEndsTheSession frees nodes at once, and is bounded without a server.
func TestCloseEndsTheSession(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		s, near := connect(t, addr), connect(t, addr)
		n, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1})
		check(t, err)
		closeInTime(t, s)
		if _, _, err := near.Get(t.Context(), n.Path); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("the node of a closed session: %v", err)
		}
		proxy := testbedtest.StartProxy(t, addr)
		cut := connect(t, proxy.Addr())
		proxy.BlackHole()
		closeInTime(t, cut)
	})
}

// TestEmptyServerIsAccepted has a server lose its data, and refuse clients that have
// seen more than it knows.
func TestEmptyServerIsAccepted(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		s := connect(t, server.Addr())
		for range 3 {
			_, err := s.CreateProtected(t.Context(), zookeeper.Protected{Dir: dir(t), Label: "x-", ParentVersion: -1})
			check(t, err)
		}
		before := s.Epoch()
		check(t, server.RestartEmpty(t.Context()))
		testbedtest.Eventually(t, "session on the empty server", func() bool { return s.Epoch() != before && s.Sync(t.Context()) == nil })
	})
}

// TestSilentServerIsPassedOver has one of two servers accept connections and say
// nothing, for which the library alone waits for several sessions.
func TestSilentServerIsPassedOver(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		silent := testbedtest.StartProxy(t, addr)
		silent.BlackHole()
		var wg sync.WaitGroup
		for range 8 { // half of them begin with the silent one
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 3*timeout)
				defer cancel()
				s, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{silent.Addr(), addr}, Timeout: timeout})
				if err != nil {
					t.Error(err)
					return
				}
				closeInTime(t, s)
			})
		}
		wg.Wait()
	})
}

// TestMemberInAMinorityIsLeft moves an address to another server, while connections to the former one stay open. That one
// loses its quorum, and ends them.
func TestMemberInAMinorityIsLeft(t *testing.T) {
	t.Parallel()
	former, next := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{}), testbedtest.ZooKeeper(t)
	proxy := testbedtest.StartProxy(t, former.Addrs()[0])
	s := connect(t, proxy.Addr())
	testbedtest.Eventually(t, "the former server", func() bool { return s.Create(t.Context(), dir(t)+"/node", nil) == nil })
	proxy.Lead(next)
	for _, member := range former.Nodes()[1:] {
		check(t, member.Kill())
	}
	testbedtest.Eventually(t, "the other server", func() bool { return s.Create(t.Context(), dir(t)+"/node", nil) == nil })
}
