package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// leaseOf returns the lease of an owner, without the number of its use.
func leaseOf(owner string) string {
	lease, _, _ := strings.Cut(owner, "-")
	return lease
}

// leases returns how many leases the server has.
func leases(t testing.TB, admin *clientv3.Client) int {
	t.Helper()
	found, err := admin.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(found.Leases)
}

// TestLeaseServesOneAtATime reads the history of etcd while calls are cancelled and replies are lost. No lease ever
// had two keys, and none was used again after a release of unknown outcome.
func TestLeaseServesOneAtATime(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		var load, faults sync.WaitGroup
		var mu sync.Mutex
		unknown, used := map[string]bool{}, map[string]bool{}
		again := false // whether a lease was seen twice
		proven := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(unknown) > 0 && again
		}
		keys := []string{rand.Text(), rand.Text(), rand.Text()}
		over := make(chan struct{})
		for range 3 {
			th := &thief{proxy: testbedtest.StartProxy(t, server.Addr())}
			l := configured(t, client(t, th.proxy.Addr(), grpc.WithChainUnaryInterceptor(th.intercept)), etcdlock.Config{TTL: 20 * ttl})
			faults.Go(func() {
				// Less and less often: a busy machine gets nothing done between two faults.
				for pause := 30 * time.Millisecond; ; pause += pause / 20 {
					select {
					case <-time.After(pause):
						th.armed.Store(true)
					case <-over:
						return
					}
				}
			})
			for range 5 {
				load.Go(func() {
					for n := 0; n < testbedtest.Size(40, 400) || !proven() && ctx.Err() == nil; n++ { // a busy machine grants little
						short, cancel := context.WithTimeout(ctx, mathrand.N(ttl/10))
						lease, err := l.Acquire(short, keys[mathrand.N(len(keys))])
						cancel()
						if err != nil {
							continue
						}
						err = lease.Release(ctx)
						owner := lease.Fence().Owner
						mu.Lock()
						again = again || used[leaseOf(owner)]
						used[leaseOf(owner)] = true
						if err != nil && !errors.Is(err, dlock.ErrLost) {
							unknown[owner] = true
						}
						mu.Unlock()
					}
				})
			}
		}
		load.Wait()
		close(over)
		faults.Wait()
		h := historyOf(t.Context(), t, client(t, server.Addr()))
		most := 0
		for owner, uses := range h.uses {
			most = max(most, uses)
			if unknown[owner] && h.last[leaseOf(owner)] != owner {
				t.Errorf("the lease of %s has served %s, although it was not known whether that was released", owner, h.last[leaseOf(owner)])
			}
		}
		if len(unknown) == 0 || most < 2 {
			t.Errorf("%d releases of unknown outcome, %d uses of one lease at most: that proves nothing", len(unknown), most)
		}
	})
}

// usage is what the history of etcd records of leases.
type usage struct {
	uses map[string]int    // of the lease of an owner, up to that one
	last map[string]string // owner by lease
}

// historyOf reads all that has happened below the prefix of locks.
func historyOf(ctx context.Context, t testing.TB, admin *clientv3.Client) usage {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end, err := admin.Put(ctx, "shop/locks/end", "")
	if err != nil {
		t.Fatal(err)
	}
	h, live := usage{map[string]int{}, map[string]string{}}, map[int64]string{}
	count := map[string]int{}
	lease := map[string]int64{}
	for answer := range admin.Watch(ctx, "shop/locks/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		for _, event := range answer.Events {
			key := string(event.Kv.Key)
			owner := key[strings.LastIndexByte(key, '/')+1:]
			switch {
			case event.Kv.ModRevision >= end.Header.Revision:
				return h
			case event.Type == mvccpb.DELETE:
				delete(live, lease[key])
			case live[event.Kv.Lease] != "":
				testbedtest.Final(t, "lease %x has %s and %s", event.Kv.Lease, live[event.Kv.Lease], key)
			case lease[key] != 0:
				testbedtest.Final(t, "%s was written twice", key)
			default:
				live[event.Kv.Lease], lease[key] = key, event.Kv.Lease
				count[leaseOf(owner)]++
				h.uses[owner], h.last[leaseOf(owner)] = count[leaseOf(owner)], owner
			}
		}
	}
	t.Fatal("the history ends too soon")
	return h
}

// A lease that somebody has revoked while nobody used it costs the next one a round, and
// nothing else.
func TestIdleLeaseIsRevoked(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, admin := bounded(t), client(t, testbedtest.Etcd(t))
		l, key := configured(t, admin, etcdlock.Config{TTL: far}), rand.Text()
		for _, acquire := range []func(context.Context, string) (*dlock.Lease, error){l.Acquire, l.TryAcquire} {
			first := take(ctx, t, l, key)
			id := inOrder(t, admin, lockQueue(key)).Kvs[0].Lease
			release(ctx, t, first)
			if _, err := admin.Revoke(ctx, clientv3.LeaseID(id)); err != nil {
				t.Fatal(err)
			}
			lease, err := acquire(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if same := leaseOf(lease.Fence().Owner) == leaseOf(first.Fence().Owner); same {
				t.Error("the lease was not revoked")
			}
			release(ctx, t, lease)
		}
	})
}

// A lease that is no longer young serves nobody any more: its validity would end soon.
func TestOldLeaseIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		admin := client(t, server.Addr())
		l, key := locker(t, admin), rand.Text()
		use := func(held time.Duration) string {
			lease := take(ctx, t, l, key)
			<-time.After(held)
			release(ctx, t, lease)
			return leaseOf(lease.Fence().Owner)
		}
		connected(t, admin)
		start := time.Now()
		first := use(0)
		if second := use(0); second != first && time.Since(start) < ttl/3 {
			t.Error("a young lease does not serve the next one")
		}
		<-time.After(ttl / 3)
		third := use(ttl / 3)
		if third == first {
			t.Error("an idle lease is used when it is old")
		}
		if use(0) == third {
			t.Error("a lease that was held for long is used again")
		}
		testbedtest.Eventually(t, "the end of old leases", func() bool { return leases(t, admin) == 1 })
	})
}

// Many leases that are released at once are not all kept, and after Close there is none.
func TestIdleLeasesAreBounded(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const most = 64
		ctx := bounded(t)
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		admin := client(t, server.Addr())
		l, err := etcdlock.New(client(t, server.Addr()), etcdlock.Config{TTL: far})
		if err != nil {
			t.Fatal(err)
		}
		var held []*dlock.Lease
		for range most + 10 {
			held = append(held, take(ctx, t, l, rand.Text()))
		}
		for _, lease := range held {
			release(ctx, t, lease)
		}
		testbedtest.Eventually(t, "what is too much to be revoked", func() bool { return leases(t, admin) == most })
		late := take(ctx, t, l, rand.Text())
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := leases(t, admin); n != 0 {
			t.Errorf("%d leases are left", n)
		}
		if err := late.Release(ctx); !errors.Is(err, dlock.ErrLost) {
			t.Errorf("Release after Close = %v, want ErrLost", err)
		}
	})
}

// A lock costs two requests, and the first one a third, for its lease.
func TestRequests(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, key := bounded(t), rand.Text()
		var sent []string
		counting := func(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			sent = append(sent, path.Base(method))
			return call(ctx, method, q, reply, conn, options...)
		}
		l := configured(t, client(t, testbedtest.Etcd(t), grpc.WithChainUnaryInterceptor(counting)), etcdlock.Config{TTL: far})
		for _, want := range [][]string{{"LeaseGrant", "Txn", "Txn"}, {"Txn", "Txn"}} {
			sent = nil
			release(ctx, t, take(ctx, t, l, key))
			if !slices.Equal(sent, want) {
				t.Errorf("a lock costs %q, want %q", sent, want)
			}
		}
	})
}
