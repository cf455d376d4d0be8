package etcdlock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// A holder that gets no messages finds out by its next renewal that its key was
// deleted, although its lease lives on.
func TestRenewalReadsTheKey(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		l, key := locker(t, client(t, addr, grpc.WithChainStreamInterceptor(deaf))), rand.Text()
		lease := take(ctx, t, l, key)
		harms(client(t, addr))["key deleted"](t, lockQueue(key))
		awaitEnd(t, lease)
	})
}

// A lease outlives a wait that is longer than its TTL.
func TestWaitBeyondTheTTL(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		key := rand.Text()
		holder := take(ctx, t, locker(t, client(t, addr)), key)
		released := make(chan error, 1)
		time.AfterFunc(4*ttl/3, func() { released <- holder.Release(ctx) })
		waiter := take(ctx, t, locker(t, client(t, addr)), key)
		if err := <-released; err != nil {
			t.Errorf("the holder's Release = %v", err)
		}
		release(ctx, t, waiter)
	})
}

// demoted gives renewals of leases an older term than that of other answers.
type demoted struct{ grpc.ClientStream }

// RecvMsg implements grpc.ClientStream.
func (s demoted) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if answer, ok := m.(*pb.LeaseKeepAliveResponse); ok && err == nil {
		answer.Header.RaftTerm--
	}
	return err
}

// Renewals that a former leader answers, which does not know that it is none, do not
// count: the next leader knows nothing of them.
func TestRenewalByAFormerLeader(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		former := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, conn, method, options...)
			if err == nil && method == pb.Lease_LeaseKeepAlive_FullMethodName {
				stream = demoted{stream}
			}
			return stream, err
		}
		l := locker(t, client(t, testbedtest.Etcd(t), grpc.WithChainStreamInterceptor(former)))
		awaitEnd(t, take(ctx, t, l, rand.Text()))
	})
}

// A reused lease is valid for the rest of its TTL, and not for a TTL from now. Without renewals its validity ends
// before its key does.
func TestReusedLeaseIsValidForItsRest(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		mute := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := deaf(ctx, desc, conn, method, open, options...)
			if err == nil && method == pb.Lease_LeaseKeepAlive_FullMethodName {
				return nil, status.Error(codes.Unavailable, "no renewals")
			}
			return stream, err
		}
		const long = 2 * ttl
		cli := connected(t, client(t, addr, grpc.WithChainStreamInterceptor(mute)))
		l, key := configured(t, cli, etcdlock.Config{TTL: long}), rand.Text()
		for ctx.Err() == nil {
			start := time.Now()
			first := take(ctx, t, l, key)
			release(ctx, t, first)
			<-time.After(long / 4)
			second := take(ctx, t, l, key)
			if leaseOf(first.Fence().Owner) != leaseOf(second.Fence().Owner) { // the machine is busy, and it was too old
				continue
			}
			ended := make(chan time.Time, 1)
			second.OnEnd(func(error) { ended <- time.Now() })
			if d := (<-ended).Sub(start); d > long {
				t.Errorf("the holder was notified after %v, and etcd keeps its lease for %v", d, long)
			}
			testbedtest.Eventually(t, "the lease to be given back", func() bool { return len(keysOf(t, client(t, addr), lockQueue(key))) == 0 })
			return
		}
	})
}

// sending is the context of a call whose first request is about to be sent when f is called.
type sending struct {
	context.Context //nolint:containedctx // It is one.
	f               func()
}

func (s sending) Deadline() (time.Time, bool) {
	s.f()
	return s.Context.Deadline()
}

// ForceRelease may free a grant that was made after the call began. Then no caller gets another turn under that grant.
func TestForceReleaseEndsTheSharingOfANewGrant(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		l, key := locker(t, client(t, testbedtest.Etcd(t))), rand.Text()
		var first *dlock.Lease
		next := make(chan *dlock.Lease, 1)
		var once sync.Once // OnceFunc would panic when take ends this run of the test
		grant := func() {
			first = take(ctx, t, l, key)
			go func() {
				lease, err := l.Acquire(ctx, key)
				if err != nil {
					t.Error(err)
				}
				next <- lease
			}()
			testbedtest.Eventually(t, "the other caller to wait", func() bool {
				state, err := l.Inspect(ctx, key)
				return err == nil && state.Waiters == 1
			})
		}
		err := l.ForceRelease(sending{ctx, func() { once.Do(grant) }}, key)
		if err != nil {
			t.Fatal(err)
		}
		_ = first.Release(ctx) // it may be lost
		lease := <-next
		if lease == nil {
			return
		}
		if strings.Contains(lease.Fence().Owner, "+") {
			t.Errorf("%v is a turn under a grant that was force-released", lease.Fence())
		}
		release(ctx, t, lease)
	})
}
