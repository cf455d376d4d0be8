package etcdlock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
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

	n    *atomic.Int32
	gate *sync.RWMutex
}

// RecvMsg implements grpc.ClientStream.
func (s begun) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	s.gate.RLock()
	defer s.gate.RUnlock()
	if answer, ok := m.(*pb.WatchResponse); ok && err == nil && answer.Created {
		s.n.Add(1)
	}
	return err
}

// counting counts them in n, and passes no message on while gate is locked.
func counting(n *atomic.Int32, gate *sync.RWMutex) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, conn, method, options...)
		return begun{stream, n, gate}, err
	})
}

// A waiter whose lease ends while its messages are cut off must not assume that the later messages are complete.
func TestWaiterWhoseMessagesBreakOff(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		admin, proxy, key := client(t, addr), testbedtest.StartProxy(t, addr), rand.Text()
		first := take(ctx, t, locker(t, admin), key)
		var watches atomic.Int32
		l := configured(t, client(t, proxy.Addr(), counting(&watches, new(sync.RWMutex))), etcdlock.Config{TTL: far})
		returned := make(chan error, 1)
		go func() { _, err := l.Acquire(ctx, key); returned <- err }()
		testbedtest.Eventually(t, "the waiter to watch", func() bool { return watches.Load() == 1 })
		proxy.Refuse()
		harms(admin)["lease revoked"](t, lockQueue(key))
		harm(t, proxy.Pass)
		testbedtest.Eventually(t, "the waiter to watch again", func() bool { return watches.Load() >= 2 || len(returned) > 0 })
		release(ctx, t, first)
		if err := <-returned; !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Acquire = %v, want ErrLost", err)
		}
	})
}

// Waiters whose own keys were deleted must not get the locks when the keys ahead of them are deleted. This holds even
// if etcd cannot send all messages at once: it sends the rest later, after newer events.
func TestWaitersOnACrowdedStream(t *testing.T) {
	testbedtest.Measured(t) // with other work alongside it, the watches of the full size take longer than the test
	testbedtest.Steady(t, func(t testing.TB) {
		n, rounds := testbedtest.Size(256, 1024), testbedtest.Size(1, 10)
		key := func(i int) string { return strings.Repeat("k", 4096) + strconv.Itoa(i) } // few fill the stream
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		admin := client(t, addr)
		for range rounds {
			var (
				watches atomic.Int32
				gate    sync.RWMutex
			)
			prefix := rand.Text() + "/"
			l := configured(t, client(t, addr, counting(&watches, &gate)), etcdlock.Config{TTL: far, Timeout: far / 3, Prefix: prefix})
			var ahead []string
			for i := range n {
				ahead = append(ahead, prefix+key(i)+"/somebody")
			}
			all(ctx, t, admin, 128, ahead, func(key string) clientv3.Op { return clientv3.OpPut(key, "") })
			returned := make(chan error, n)
			for i := range n {
				go func() { _, err := l.Acquire(ctx, key(i)); returned <- err }()
				if i%64 == 63 { // all at once are too much for a busy etcd
					testbedtest.Eventually(t, "the waiters to watch", func() bool { return watches.Load() > int32(i) || len(returned) > 0 })
				}
			}
			if len(returned) > 0 {
				t.Fatalf("a waiter waits no more: %.200s", <-returned)
			}
			own := slices.DeleteFunc(keysOf(t, admin, prefix), func(key string) bool { return slices.Contains(ahead, key) })
			gone := func(key string) clientv3.Op { return clientv3.OpDelete(key) }
			gate.Lock()
			all(ctx, t, admin, 128, own, gone)
			gate.Unlock()
			all(ctx, t, admin, 32, ahead, gone) // for as long as the messages are late
			granted := 0
			for range n {
				if err := <-returned; err == nil {
					granted++
				} else if !errors.Is(err, dlock.ErrLost) {
					t.Error(err)
				}
			}
			if granted > 0 {
				t.Fatalf("%d of %d waiters whose keys had gone have the locks", granted, n)
			}
		}
	})
}

// all does the same to each of keys, so many at a time; etcd takes 128 at most.
func all(ctx context.Context, t testing.TB, admin *clientv3.Client, together int, keys []string, what func(key string) clientv3.Op) {
	t.Helper()
	for some := range slices.Chunk(keys, together) {
		var ops []clientv3.Op
		for _, key := range some {
			ops = append(ops, what(key))
		}
		if _, err := admin.Txn(ctx).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// A watch may receive nothing for a moment after it has begun. A waiter then polls early, long before its fallback
// poll.
func TestWaiterPollsEarly(t *testing.T) {
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
			testbedtest.Eventually(t, "the waiter", func() bool { return len(keysOf(t, admin, lockQueue(key))) == 2 })
			start := time.Now()
			release(ctx, t, first)
			if err := <-returned; err != nil {
				t.Fatal(err)
			}
			soonest = min(soonest, time.Since(start))
		}
		if soonest > time.Second/2 {
			t.Errorf("a waiter that receives nothing has the key after %v at the earliest", soonest)
		}
	})
}

// A waiter whose client panics during a poll deletes its queue node. Its process continues, as a server does that
// recovers from panics in its handlers.
func TestPanicDeletesTheQueueNode(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, addr := bounded(t), testbedtest.Etcd(t)
		admin, key := client(t, addr), rand.Text()
		first := take(ctx, t, locker(t, admin), key)
		l := locker(t, client(t, addr, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
				if q, ok := q.(*pb.TxnRequest); ok && len(q.Failure) > 0 { // a poll
					panic("in an interceptor")
				}
				return call(ctx, method, q, reply, conn, options...)
			})))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("there was no panic")
				}
			}()
			l.Acquire(ctx, key)
		}()
		testbedtest.Eventually(t, "its place to be gone", func() bool { return len(keysOf(t, admin, lockQueue(key))) == 1 })
		release(ctx, t, first)
	})
}
