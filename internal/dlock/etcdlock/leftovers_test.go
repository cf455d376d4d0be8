package etcdlock_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestNothingIsLeftBehind has many waiters give up at random moments, on a server of their own. In the end the server
// has no key, lease or watch of theirs. TestMain checks that this process has no goroutine left.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		key := rand.Text()
		var all []*etcdlock.Locker
		for range 4 {
			l, err := etcdlock.New(client(t, server.Addr()), etcdlock.Config{TTL: 20 * ttl}) // no TTL cleans up
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		holder := take(ctx, t, all[0], key)
		var waiters sync.WaitGroup
		for i := range 1000 {
			waiters.Go(func() {
				short, cancel := context.WithTimeout(ctx, mathrand.N(ttl))
				defer cancel()
				acquire := all[i%len(all)].Acquire
				if i%5 == 0 {
					acquire = all[i%len(all)].TryAcquire
				}
				if lease, err := acquire(short, key); err == nil {
					lease.Release(ctx)
				}
			})
		}
		time.AfterFunc(ttl/2, func() { holder.Release(ctx) })
		waiters.Wait()
		testbedtest.Eventually(t, "the end of the watches", func() bool { return metric(t, server, "etcd_debugging_mvcc_watcher_total") == "0" })
		for _, l := range all {
			if err := l.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		admin := client(t, server.Addr())
		if left := keysOf(t, admin, "shop/"); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		leases, err := admin.Leases(ctx)
		if err != nil || len(leases.Leases) > 0 {
			t.Errorf("left behind: %d leases, %v", len(leases.Leases), err)
		}
	})
}

// A caller that finds a key free, and then loses the race for it, has a lease already.
func TestLostRaceLeavesNoLease(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		key, faster := rand.Text(), configured(t, client(t, server.Addr()), etcdlock.Config{TTL: far})
		var lease *dlock.Lease
		overtaken := func(ctx context.Context, method string, q, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if changes(q) && lease == nil {
				lease = take(ctx, t, faster, key)
			}
			return call(ctx, method, q, reply, conn, options...)
		}
		l := locker(t, client(t, server.Addr(), grpc.WithChainUnaryInterceptor(overtaken)))
		if _, err := l.TryAcquire(ctx, key); !errors.Is(err, dlock.ErrHeld) {
			t.Fatalf("TryAcquire = %v, want ErrHeld", err)
		}
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
		leases, err := client(t, server.Addr()).Leases(ctx)
		if err != nil || len(leases.Leases) != 1 {
			t.Errorf("%d leases for one holder, %v", len(leases.Leases), err)
		}
		release(ctx, t, lease)
	})
}

// metric returns what the server says of itself.
func metric(t testing.TB, server *testbed.Etcd, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server.Addr()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	defer io.Copy(io.Discard, response.Body)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	t.Fatalf("the server has no metric %s", name)
	return ""
}
