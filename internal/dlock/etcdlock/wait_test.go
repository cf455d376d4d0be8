package etcdlock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/testbed/testbedtest"
)

// lateReason delays the question why a key is gone. The answer is not needed to know that.
func lateReason(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if q, ok := q.(*pb.TxnRequest); ok && bytes.HasPrefix(q.Success[0].GetRequestRange().GetKey(), []byte("shop/locks//")) {
		<-time.After(time.Second)
	}
	return call(ctx, method, q, reply, conn, options...)
}

// lateWatch delays the beginning of watches.
func lateWatch(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == pb.Watch_Watch_FullMethodName {
		<-time.After(time.Second / 3)
	}
	return open(ctx, desc, conn, method, options...)
}

// begun counts the watches that have begun on a stream.
type begun struct {
	grpc.ClientStream

	n *atomic.Int32
}

// RecvMsg implements grpc.ClientStream.
func (s begun) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if answer, ok := m.(*pb.WatchResponse); ok && err == nil && answer.Created {
		s.n.Add(1)
	}
	return err
}

// A waiter whose lease ends while its messages are cut off must not take what it hears
// later for all that happened.
func TestWaiterWhoseMessagesBreakOff(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		admin, proxy, key := client(t, addr), testbedtest.StartProxy(t, addr), rand.Text()
		first := take(ctx, t, locker(t, admin), key)
		var watches atomic.Int32
		counting := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, conn, method, options...)
			return begun{stream, &watches}, err
		}
		l := configured(t, client(t, proxy.Addr(), grpc.WithChainStreamInterceptor(counting)), etcdlock.Config{TTL: far})
		returned := make(chan error, 1)
		go func() { _, err := l.Acquire(ctx, key); returned <- err }()
		waitFor(t, "the waiter to watch", func() bool { return watches.Load() == 2 }) // its own key, and the one ahead
		proxy.Refuse()
		harms(admin)["lease revoked"](t, lockQueue(key))
		harm(t, proxy.Pass)
		waitFor(t, "the waiter to watch again", func() bool { return watches.Load() >= 4 || len(returned) > 0 })
		release(ctx, t, first)
		if err := <-returned; !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Acquire = %v, want ErrLost", err)
		}
	})
}

// A watch may hear of nothing for a moment after it has begun. A waiter looks early then,
// long before it looks because it has heard nothing.
func TestWaiterLooksEarly(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		admin := client(t, addr)
		l := configured(t, client(t, addr, grpc.WithChainStreamInterceptor(deaf)), etcdlock.Config{TTL: far})
		soonest := time.Hour
		for range 10 {
			key := rand.Text()
			first := take(ctx, t, l, key)
			returned := make(chan error, 1)
			go func() {
				lease, err := l.Acquire(ctx, key)
				if err == nil {
					err = lease.Release(ctx)
				}
				returned <- err
			}()
			waitFor(t, "the waiter", func() bool { return len(keysOf(t, admin, lockQueue(key))) == 2 })
			start := time.Now()
			release(ctx, t, first)
			if err := <-returned; err != nil {
				t.Fatal(err)
			}
			soonest = min(soonest, time.Since(start))
		}
		if soonest > time.Second/2 {
			t.Errorf("a waiter that hears nothing has the key after %v at the earliest", soonest)
		}
	})
}
