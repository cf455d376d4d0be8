package testbed_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func etcdClient(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// revision puts a key and returns the revision of that.
func revision(t testing.TB, addrs ...string) int64 {
	t.Helper()
	put, err := etcdClient(t, addrs...).Put(t.Context(), "k", "v")
	if err != nil {
		t.Fatal(err)
	}
	return put.Header.Revision
}

func TestEtcdRestart(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		e := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		first := revision(t, e.Addr())
		if err := errors.Join(e.Pause(), e.Resume(), e.Kill(), e.Kill()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // From killed and from running.
			if err := e.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := revision(t, e.Addr()), first+int64(i)+1; got != want {
				t.Errorf("revision %d after Restart, want %d", got, want)
			}
		}
		if err := e.RestartEmpty(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := revision(t, e.Addr()); got != first {
			t.Errorf("revision %d after RestartEmpty, want %d", got, first)
		}
	})
}

func TestEtcdIsNotMistakenForAnother(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		e, other := testbedtest.StartEtcd(t, testbed.EtcdConfig{}), testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		go http.Serve(taken, httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: other.Addr()}))
		if err := e.Restart(t.Context()); err == nil {
			t.Error("the server that has the port was taken for ours")
		}
		if err := e.Pause(); !errors.Is(err, testbed.ErrNotRunning) {
			t.Errorf("pause: got %v, want %v", err, testbed.ErrNotRunning)
		}
	})
}

func TestEtcdCluster(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		c := testbedtest.StartEtcdCluster(t, testbed.EtcdConfig{})
		first := revision(t, c.Addrs()...)
		leader, err := c.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Pause(); err != nil {
			t.Fatal(err)
		}
		next, err := c.Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if next == leader {
			t.Error("a paused leader still leads")
		}
		if got := revision(t, next.Addr()); got <= first {
			t.Errorf("revision %d with another leader, want more than %d", got, first)
		}
		if err := errors.Join(leader.Resume(), next.Kill(), next.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(c.Addrs()[0], "127.0.0.1:") || len(c.Members()) != 3 {
			t.Errorf("addresses %v", c.Addrs())
		}
	})
}
