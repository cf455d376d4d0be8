package testbed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// quiet is a logger of a client.
type quiet struct{}

// Printf implements zk.Logger.
func (quiet) Printf(string, ...any) {}

// zooKeeper returns a client. Its goroutines end soon after Close.
func zooKeeper(t testing.TB, addrs ...string) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect(addrs, 2*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
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

func TestZooKeeperRestart(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		z := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		acl := zk.WorldACL(zk.PermAll)
		if _, err := zooKeeper(t, z.Addr()).Create("/kept", nil, 0, acl); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			name    string
			restart func() error
			want    bool
		}{
			{"keeps its data", func() error { return z.Restart(t.Context()) }, true},
			{"empty", func() error { return z.RestartEmpty(t.Context()) }, false},
		} {
			if err := z.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := tt.restart(); err != nil {
				t.Fatal(err)
			}
			if found, _, err := zooKeeper(t, z.Addr()).Exists("/kept"); found != tt.want || err != nil {
				t.Errorf("%s: found %v, %v", tt.name, found, err)
			}
		}
		if answer, err := z.Ask(t.Context(), "srvr"); err != nil || !strings.Contains(answer, "Mode: standalone") {
			t.Errorf("srvr: %q, %v", answer, err)
		}
	})
}

func TestZooKeeperEnsembleReplacesItsLeader(t *testing.T) {
	t.Parallel()
	testbedtest.FullSize(t)
	testbedtest.Steady(t, func(t testing.TB) {
		e := testbedtest.StartZooKeeperEnsemble(t, testbed.ZooKeeperConfig{})
		first, err := e.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Kill(); err != nil {
			t.Fatal(err)
		}
		second, err := e.Leader(t.Context())
		if err != nil || second == first {
			t.Fatalf("%v leads after %v was killed: %v", second.Addr(), first.Addr(), err)
		}
		if err := first.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestZooKeeperExpire ends the session of a client, which has an ephemeral node.
func TestZooKeeperExpire(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		z := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
		victim, other := zooKeeper(t, z.Addr()), zooKeeper(t, z.Addr())
		if _, err := victim.Create("/victim", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, stat, err := other.Get("/victim")
		if err != nil {
			t.Fatal(err)
		}
		if err := z.Expire(t.Context(), stat.EphemeralOwner); err != nil {
			t.Fatal(err)
		}
		if there, _, err := other.Exists("/victim"); there || err != nil {
			t.Errorf("the node is there: %v, %v", there, err)
		}
		if err := z.Expire(t.Context(), stat.EphemeralOwner); err == nil {
			t.Error("the session has ended, and can be ended again")
		}
	})
}
