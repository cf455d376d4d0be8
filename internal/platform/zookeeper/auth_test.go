package zookeeper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/platform/zookeeper"
)

// TestNodesBelongToTheUser makes nodes of all kinds as a user, also over a second connection.
// Sessions without this user and password can do nothing with them.
func TestNodesBelongToTheUser(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		addr := testbedtest.ZooKeeper(t)
		proxy := testbedtest.StartProxy(t, addr)
		ctx, root := t.Context(), dir(t)
		open := func(server, auth string) *zookeeper.Session {
			t.Helper()
			s, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{server}, Timeout: 10 * time.Second, Root: root, Auth: auth})
			check(t, err)
			t.Cleanup(func() { closeInTime(t, s) })
			return s
		}
		s, same := open(proxy.Addr(), "shop:secret"), open(addr, "shop:secret")
		strangers := map[string]*zookeeper.Session{
			"no user": open(addr, ""), "another user": open(addr, "other:secret"), "another password": open(addr, "shop:other"),
		}
		create := func(name string) {
			t.Helper()
			check(t, s.Create(ctx, "/"+name+"/stays", []byte("kept")))
			n, err := s.CreateProtected(ctx, zookeeper.Protected{Dir: "/" + name + "/queue", Label: "x-", ParentVersion: -1})
			check(t, err)
			for who, other := range strangers {
				for what, err := range map[string]error{
					"read":               second(other.Get(ctx, n.Path)),
					"list":               second(other.Children(ctx, "/"+name)),
					"change":             first(other.Set(ctx, "/"+name+"/stays", nil, -1)),
					"delete":             other.Delete(ctx, "/"+name+"/stays", -1),
					"delete a place":     other.Delete(ctx, n.Path, -1),
					"create":             other.Create(ctx, "/"+name+"/more", nil),
					"create at the root": other.Create(ctx, "/more-"+name, nil),
				} {
					if !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("%s: %s, %s: error = %v, want %v", name, who, what, err, zk.ErrNoAuth)
					}
				}
			}
			if data, _, err := same.Get(ctx, "/"+name+"/stays"); err != nil || string(data) != "kept" {
				t.Errorf("%s: the user reads %q, %v", name, data, err)
			}
			check(t, same.Delete(ctx, "/"+name+"/stays", -1))
			check(t, s.Delete(ctx, n.Path, -1))
		}
		create("one")
		proxy.Refuse()
		testbedtest.Eventually(t, "disconnection", func() bool { return s.State() != zookeeper.Connected })
		check(t, proxy.Pass())
		testbedtest.Eventually(t, "connection", func() bool { return s.State() == zookeeper.Connected })
		create("reconnected")
	})
	if _, err := zookeeper.Open(t.Context(), zookeeper.Config{Servers: []string{"127.0.0.1:1"}, Auth: "shop"}); err == nil {
		t.Error("a user without a password is taken")
	}
}

// TestRootIsEnough uses a session that may do nothing above its root, as others own that.
func TestRootIsEnough(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := t.Context(), testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{}).Addr()
		admin := plain(t, addr)
		_, err := admin.Create("/app", nil, 0, zk.WorldACL(zk.PermAll))
		check(t, err)
		check(t, admin.AddAuth("digest", []byte("admin:secret")))
		_, err = admin.SetACL("/", zk.AuthACL(zk.PermAll), -1)
		check(t, err)
		for _, root := range []string{"/app", "/app/made/on/demand"} {
			s, err := zookeeper.Connect(ctx, zookeeper.Config{Servers: []string{addr}, Timeout: timeout, Root: root})
			check(t, err)
			t.Cleanup(func() { closeInTime(t, s) })
			check(t, s.Confirm(ctx))
			if s.Confirmed().IsZero() {
				t.Errorf("%s: the session is not confirmed", root)
			}
			check(t, s.Create(ctx, "/node", nil))
		}
	})
}

func first(_ *zk.Stat, err error) error { return err }

func second[T any](_ T, _ *zk.Stat, err error) error { return err }
