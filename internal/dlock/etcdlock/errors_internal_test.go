package etcdlock

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// put is a request that writes.
var put = &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}

type provocation struct {
	code    codes.Code
	provoke func(ctx context.Context, t *testing.T, server *testbed.Etcd, conn grpc.ClientConnInterface) error
}

// provoked are ways to have etcd itself answer with each code that docs/reference/errors-of-stores.md marks so. They
// follow one another on one server, and give the answer to a request that writes, or would.
var provoked = []provocation{
	{codes.InvalidArgument, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		return second(pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{}))
	}},
	{codes.NotFound, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		return second(pb.NewKVClient(conn).Put(ctx, &pb.PutRequest{Key: []byte("k"), Lease: 1}))
	}},
	{codes.FailedPrecondition, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		lease := &pb.LeaseGrantRequest{ID: 2, TTL: 60}
		if _, err := pb.NewLeaseClient(conn).LeaseGrant(ctx, lease); err != nil {
			return err
		}
		return second(pb.NewLeaseClient(conn).LeaseGrant(ctx, lease))
	}},
	{codes.OutOfRange, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		return second(pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: 1 << 40}))
	}},
	{codes.Unimplemented, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, "/etcdserverpb.KV/PutLater", put, &pb.PutResponse{})
	}},
	{codes.ResourceExhausted, func(ctx context.Context, t *testing.T, _ *testbed.Etcd, _ grpc.ClientConnInterface) error {
		t.Helper()
		full := testbedtest.StartEtcd(t, testbed.EtcdConfig{Args: []string{"--quota-backend-bytes", "4096"}})
		return second(pb.NewKVClient(connect(t, full).ActiveConnection()).Put(ctx, put))
	}},
	{codes.PermissionDenied, func(ctx context.Context, t *testing.T, server *testbed.Etcd, _ grpc.ClientConnInterface) error {
		t.Helper()
		root := connect(t, server)
		errs := make([]error, 4)
		_, errs[0] = root.UserAdd(ctx, "root", "secret")
		_, errs[1] = root.UserGrantRole(ctx, "root", "root")
		_, errs[2] = root.UserAdd(ctx, "guest", "secret")
		_, errs[3] = root.AuthEnable(ctx)
		if err := errors.Join(errs...); err != nil {
			return err
		}
		token, err := pb.NewAuthClient(root.ActiveConnection()).Authenticate(ctx, &pb.AuthenticateRequest{Name: "guest", Password: "secret"})
		if err != nil {
			return err
		}
		return second(pb.NewKVClient(root.ActiveConnection()).Put(metadata.AppendToOutgoingContext(ctx, "token", token.Token), put))
	}},
	{codes.Unauthenticated, func(ctx context.Context, _ *testing.T, _ *testbed.Etcd, conn grpc.ClientConnInterface) error {
		return second(pb.NewKVClient(conn).Put(metadata.AppendToOutgoingContext(ctx, "token", "forged.1"), put))
	}},
	{codes.Canceled, func(ctx context.Context, t *testing.T, server *testbed.Etcd, conn grpc.ClientConnInterface) error {
		t.Helper()
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		defer server.Resume()
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(100*time.Millisecond, cancel)
		return second(pb.NewKVClient(conn).Put(ctx, put))
	}},
	{codes.DeadlineExceeded, func(ctx context.Context, t *testing.T, server *testbed.Etcd, conn grpc.ClientConnInterface) error {
		t.Helper()
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		defer server.Resume()
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return second(pb.NewKVClient(conn).Put(ctx, put))
	}},
	{codes.Unavailable, func(ctx context.Context, t *testing.T, server *testbed.Etcd, conn grpc.ClientConnInterface) error {
		t.Helper()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		return second(pb.NewKVClient(conn).Put(ctx, put))
	}},
}

func second[T any](_ T, err error) error { return err }

func connect(t *testing.T, server *testbed.Etcd) *clientv3.Client {
	t.Helper()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	return cli
}

// TestErrorsPage compares docs/reference/errors-of-stores.md with the code, and with the answers of a server.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/reference/errors-of-stores.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ answer, provoked string }
	rows := map[string]row{}
	for _, m := range regexp.MustCompile(`(?m)^\| etcd \| (\w+) \| [^|]+ \| ([^|]+) \| (yes|no) \|$`).FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = row{m[2], m[3]}
	}
	is := func(code codes.Code) bool {
		return slices.ContainsFunc(provoked, func(p provocation) bool { return p.code == code })
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want := row{"outcome unknown", "no"}
		if refused(status.Error(code, "")) {
			want.answer = "refused for good"
		}
		if is(code) {
			want.provoked = "yes"
		}
		if got, ok := rows[code.String()]; got != want && (ok || slices.Contains(refusals, code) || is(code)) {
			t.Errorf("%s: the page has %v, the code %v", code, got, want)
		}
	}
	server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
	conn := connect(t, server).ActiveConnection()
	for _, p := range provoked {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.provoke(ctx, t, server, conn); status.Code(err) != p.code {
			t.Errorf("%v, want %s", err, p.code)
		}
	}
}
