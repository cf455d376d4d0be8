package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// codes are those of docs/reference/errors-of-stores.md.
var codes = map[string]error{
	"NoNode": zk.ErrNoNode, "NodeExists": zk.ErrNodeExists, "BadVersion": zk.ErrBadVersion, "NotEmpty": zk.ErrNotEmpty,
	"NoChildrenForEphemerals": zk.ErrNoChildrenForEphemerals, "NoAuth": zk.ErrNoAuth, "InvalidACL": zk.ErrInvalidACL,
	"AuthFailed": zk.ErrAuthFailed, "BadArguments": zk.ErrBadArguments,
	"SessionExpired": zk.ErrSessionExpired, "SessionMoved": zk.ErrSessionMoved, "NoServer": zk.ErrNoServer,
	"ConnectionClosed": zk.ErrConnectionClosed, "Closing": zk.ErrClosing,
}

// provoked are ways to have a server, which has the node /parent/child, refuse a request.
var provoked = map[string]func(ctx context.Context, conn *zk.Conn, server *testbed.ZooKeeper) error{
	"NoNode":     func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error { return conn.Delete("/none", -1) },
	"NodeExists": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error { return create(conn, "/parent", 0) },
	"BadVersion": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error {
		return conn.Delete("/parent/child", 9)
	},
	"NotEmpty": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error { return conn.Delete("/parent", -1) },
	"NoChildrenForEphemerals": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error {
		return errors.Join(create(conn, "/ephemeral", zk.FlagEphemeral), create(conn, "/ephemeral/child", 0))
	},
	"NoAuth": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error {
		if _, err := conn.Create("/read-only", nil, 0, zk.WorldACL(zk.PermRead)); err != nil {
			return err
		}
		return create(conn, "/read-only/child", 0)
	},
	"InvalidACL": func(_ context.Context, conn *zk.Conn, _ *testbed.ZooKeeper) error {
		_, err := conn.Create("/open", nil, 0, nil)
		return err
	},
	"SessionExpired": func(ctx context.Context, conn *zk.Conn, server *testbed.ZooKeeper) error {
		_, _, watch, err := conn.ExistsW("/parent")
		if err := errors.Join(err, server.Expire(ctx, conn.SessionID())); err != nil {
			return err
		}
		select {
		case end := <-watch: // once the server has refused the session at the next connection
			return end.Err
		case <-time.After(time.Minute):
			return context.DeadlineExceeded
		}
	},
	"ConnectionClosed": func(_ context.Context, conn *zk.Conn, server *testbed.ZooKeeper) error {
		if err := server.Pause(); err != nil {
			return err
		}
		defer server.Resume()
		return create(conn, "/late", 0) // the client gives the silent connection up
	},
	"NoServer": func(ctx context.Context, conn *zk.Conn, server *testbed.ZooKeeper) error {
		if err := server.Kill(); err != nil {
			return err
		}
		err := create(conn, "/later", 0)
		for errors.Is(err, zk.ErrConnectionClosed) { // sent before the client noticed
			err = create(conn, "/later", 0)
		}
		return errors.Join(err, server.Restart(ctx))
	},
}

func create(conn *zk.Conn, path string, flags int32) error {
	_, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
	return err
}

// TestErrorsPage compares docs/reference/errors-of-stores.md with the code, and with the answers of a server.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors-of-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| ZooKeeper \| (\w+) \| [^|]+ \| ([^|]+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1)
	for _, m := range rows {
		err := codes[m[1]]
		if err == nil {
			t.Errorf("the page has %s", m[1])
			continue
		}
		if got := answer(err); got != m[2] {
			t.Errorf("%s: the page has %q, the code %q", m[1], m[2], got)
		}
		if _, ok := provoked[m[1]]; ok != (m[3] == "yes") {
			t.Errorf("%s: provoked: %v; the page has %s", m[1], ok, m[3])
		}
	}
	if len(rows) != len(codes) {
		t.Errorf("the page has %d errors, the test %d", len(rows), len(codes))
	}
	server := testbedtest.StartZooKeeper(t, testbed.ZooKeeperConfig{})
	connect := func(session time.Duration) *zk.Conn {
		conn, _, err := zk.Connect([]string{server.Addr()}, session, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		testbedtest.Eventually(t, "a connection", func() bool {
			_, _, err := conn.Exists("/")
			return err == nil
		})
		return conn
	}
	const patient, quick = 30 * time.Second, 2 * time.Second // how long a session lasts; two thirds of it without an answer end a connection
	conn := connect(patient)
	if err := errors.Join(create(conn, "/parent", 0), create(conn, "/parent/child", 0)); err != nil {
		t.Fatal(err)
	}
	order := slices.SortedFunc(maps.Keys(provoked), func(a, b string) int { // the server is harmed last
		return cmp.Or(cmp.Compare(harm(a), harm(b)), cmp.Compare(a, b))
	})
	for _, code := range order {
		if harm(code) >= 0 {
			conn = connect(quick)
		}
		if err := provoked[code](t.Context(), conn, server); !errors.Is(err, codes[code]) {
			t.Errorf("%v, want %v", err, codes[code])
		}
	}
}

func harm(code string) int {
	return slices.Index([]string{"SessionExpired", "ConnectionClosed", "NoServer"}, code)
}

// answer is what a caller makes of an error, in the words of the page.
func answer(err error) string {
	switch err = explain(err); {
	case errors.Is(err, ErrUncertain):
		return "outcome unknown"
	case errors.Is(err, ErrUnavailable):
		return "broken connection"
	}
	return "refused for good"
}
