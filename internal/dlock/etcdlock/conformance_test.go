package etcdlock_test

import (
	"context"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// ttl is what the leases of the tests have. A tenth of it, and a third, are times within
// which a busy machine must still get something done; all bounds grow with it.
const ttl = 3 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestLocker(t *testing.T) {
	t.Parallel()
	addr := testbedtest.Etcd(t)
	admin := client(t, addr)
	with := func(t testing.TB, cfg etcdlock.Config) dlock.Locker {
		cfg.TTL = ttl
		return configured(t, connected(t, client(t, addr)), cfg)
	}
	dlocktest.Run(t, dlocktest.Harness{
		New:          func(t testing.TB) dlock.Locker { return with(t, etcdlock.Config{}) },
		TTL:          ttl,
		FIFO:         true,
		Reentrant:    true,
		FallbackPoll: ttl / 4,
		Expire:       func(t testing.TB, key string) { expire(t, admin, lockQueue(key)) },
		Wipe:         func(t testing.TB, key string) { wipe(t, admin, lockQueue(key)) },
		Leftovers:    func(t testing.TB, key string) []string { return keysOf(t, admin, lockQueue(key)) },
		Deaf: func(t testing.TB) dlock.Locker {
			return locker(t, client(t, addr, grpc.WithChainStreamInterceptor(deaf)))
		},
		Answers: answers,
		Foreign: func(t testing.TB, key string) {
			if _, err := admin.Put(t.Context(), lockQueue(key)+"maintenance", ""); err != nil {
				t.Fatal(err)
			}
		},
		Capped: func(t testing.TB, limit time.Duration) dlock.Locker {
			return with(t, etcdlock.Config{MaxHold: limit})
		},
		Behind: func(t testing.TB) (dlock.Locker, dlocktest.Link) {
			cli, link := behind(t, addr)
			return locker(t, cli), link
		},
	})
}

// answers of etcd prove that nothing was written.
var answers = []error{rpctypes.ErrGRPCLeaseNotFound, status.Error(codes.ResourceExhausted, "too many requests")}

// lockQueue begins the keys of all who hold key or wait for it.
func lockQueue(key string) string { return "shop/locks/" + url.PathEscape(key) + "/" }

// inOrder returns what begins with prefix, first come first.
func inOrder(t testing.TB, admin *clientv3.Client, prefix string) *clientv3.GetResponse {
	t.Helper()
	found, err := admin.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func keysOf(t testing.TB, admin *clientv3.Client, prefix string) (all []string) {
	t.Helper()
	for _, kv := range inOrder(t, admin, prefix).Kvs {
		all = append(all, string(kv.Key))
	}
	return all
}

// expire ends the lease of the holder, as etcd does when it receives no renewal.
func expire(t testing.TB, admin *clientv3.Client, prefix string) {
	t.Helper()
	found := inOrder(t, admin, prefix)
	if len(found.Kvs) == 0 {
		t.Fatal("nobody has a lease to expire")
	}
	if _, err := admin.Revoke(t.Context(), clientv3.LeaseID(found.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
}

func wipe(t testing.TB, admin *clientv3.Client, prefix string) {
	t.Helper()
	if _, err := admin.Delete(t.Context(), prefix, clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
}

// deaf lets no message of a watch through.
func deaf(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	if err == nil && method == pb.Watch_Watch_FullMethodName {
		stream = silent{stream}
	}
	return stream, err
}

type silent struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (s silent) RecvMsg(any) error {
	<-s.Context().Done()
	return s.Context().Err()
}

// thief loses the reply to a request that changes something, once it has been
// executed, and breaks the connection on which it would have come.
type thief struct {
	proxy *testbed.Proxy
	armed atomic.Bool
	lost  atomic.Int32
}

func (th *thief) intercept(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if !changes(q) || !th.armed.CompareAndSwap(true, false) {
		return call(ctx, method, q, reply, conn, options...)
	}
	if err := call(ctx, method, q, reply, conn, options...); err != nil {
		return err
	}
	th.lost.Add(1)
	th.proxy.Refuse()
	if err := th.proxy.Pass(); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "the connection was reset")
}

// changes reports whether q takes a place or releases it.
func changes(q any) bool {
	switch q := q.(type) {
	case *pb.TxnRequest:
		for _, op := range q.Success {
			if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil {
				return true
			}
		}
		return false
	case *pb.LeaseRevokeRequest:
		return true
	default:
		return false
	}
}

// behind returns a client whose connection goes through a proxy.
func behind(t testing.TB, addr string) (*clientv3.Client, dlocktest.Link) {
	t.Helper()
	th := &thief{proxy: testbedtest.StartProxy(t, addr)}
	return client(t, th.proxy.Addr(), grpc.WithChainUnaryInterceptor(th.intercept)), dlocktest.Link{
		Cut: th.proxy.BlackHole,
		Heal: func() {
			if err := th.proxy.Pass(); err != nil {
				t.Error(err)
			}
		},
		Refuse:    th.proxy.Refuse,
		LoseReply: func() { th.armed.Store(true) },
		Lost:      func() int { return int(th.lost.Load()) },
	}
}

func client(t testing.TB, addr string, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	cli, err := etcdlock.NewClient(addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli.Close() })
	return cli
}

// connected waits until cli has a connection: on a busy machine that takes longer than
// what a case measures.
func connected(t testing.TB, cli *clientv3.Client) *clientv3.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn := cli.ActiveConnection()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is %v", state)
		}
	}
	return cli
}

func locker(t testing.TB, cli *clientv3.Client) *etcdlock.Locker {
	t.Helper()
	return configured(t, cli, etcdlock.Config{TTL: ttl})
}

func configured(t testing.TB, cli *clientv3.Client, cfg etcdlock.Config) *etcdlock.Locker {
	t.Helper()
	l, err := etcdlock.New(cli, cfg)
	if err != nil {
		t.Fatal(err)
	}
	closeInTime(t, l)
	return l
}

// closer is anything here that works in the background.
type closer interface {
	Close(ctx context.Context) error
}

func closeInTime(t testing.TB, c closer) {
	t.Helper()
	testbedtest.Closing(t, c.Close)
}
