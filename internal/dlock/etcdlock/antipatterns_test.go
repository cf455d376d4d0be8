package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/etcdlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// The tests of this file run the wrong variant, the Mutex of etcd's own library, alongside the right one. So they
// show that the trap is real, and that the test detects it.

// far is a TTL that is not over within a test: what is reported in time was not found
// by a renewal.
const far = 10 * time.Minute

// session returns what a holder of the library has.
func session(t testing.TB, cli *clientv3.Client) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(cli)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTwoHoldersOfOneClient(t *testing.T) {
	t.Parallel()
	ctx, addr := bounded(t), testbedtest.Etcd(t)
	t.Run("wrong", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			one, key := session(t, client(t, addr)), rand.Text()
			for range 2 {
				if err := concurrency.NewMutex(one, key).Lock(ctx); err != nil {
					t.Errorf("Lock = %v: two Mutexes of one Session exclude each other, so the trap is gone", err)
				}
			}
		})
	})
	t.Run("right", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			l, key := locker(t, client(t, addr)), rand.Text()
			lease := take(ctx, t, l, key)
			if _, err := l.TryAcquire(ctx, key); !errors.Is(err, dlock.ErrHeld) {
				t.Errorf("TryAcquire = %v, want ErrHeld", err)
			}
			release(ctx, t, lease)
		})
	})
}

func TestReleaseByAnExpiredOwner(t *testing.T) {
	t.Parallel()
	ctx, addr := bounded(t), testbedtest.Etcd(t)
	admin := client(t, addr)
	t.Run("wrong", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			s, key := session(t, client(t, addr)), rand.Text()
			m := concurrency.NewMutex(s, key)
			if err := m.Lock(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Revoke(ctx, s.Lease()); err != nil {
				t.Fatal(err)
			}
			if err := m.Unlock(ctx); err != nil {
				t.Errorf("Unlock = %v: it says that the lock was lost, so the trap is gone", err)
			}
		})
	})
	for how, harm := range harms(admin) {
		t.Run("right: "+how, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				ctx := bounded(t)
				l, key := configured(t, client(t, addr), etcdlock.Config{TTL: far}), rand.Text()
				lease := take(ctx, t, l, key)
				harm(t, lockQueue(key))
				if err := lease.Release(ctx); !errors.Is(err, dlock.ErrLost) {
					t.Errorf("Release = %v, want ErrLost", err)
				}
			})
		})
	}
}

// harms are the ways in which somebody can take a key from the first in its queue, or
// from the last.
func harms(admin *clientv3.Client) map[string]func(t testing.TB, queue string) {
	return map[string]func(t testing.TB, queue string){
		"lease revoked": func(t testing.TB, queue string) {
			in := inOrder(t, admin, queue).Kvs
			if _, err := admin.Revoke(t.Context(), clientv3.LeaseID(in[len(in)-1].Lease)); err != nil {
				t.Fatal(err)
			}
		},
		"key deleted": func(t testing.TB, queue string) {
			in := inOrder(t, admin, queue).Kvs
			if _, err := admin.Delete(t.Context(), string(in[len(in)-1].Key)); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// A holder is notified at once if its lease was revoked or its key deleted, long before its next renewal.
func TestHolderIsNotifiedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, addr := bounded(t), testbedtest.Etcd(t)
	admin := client(t, addr)
	t.Run("wrong", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			s, key := session(t, client(t, addr)), rand.Text()
			if err := concurrency.NewMutex(s, key).Lock(ctx); err != nil {
				t.Fatal(err)
			}
			harms(admin)["key deleted"](t, key+"/")
			if err := concurrency.NewMutex(session(t, admin), key).Lock(ctx); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Done():
				t.Error("the session of the former holder has ended, so the trap is gone")
			default:
			}
		})
	})
	for how, harm := range harms(admin) {
		for _, held := range []time.Duration{0, 300 * time.Millisecond} { // before it is watched, and after
			t.Run("right: "+how+" after "+held.String(), func(t *testing.T) {
				t.Parallel()
				testbedtest.Steady(t, func(t testing.TB) {
					ctx := bounded(t)
					l, key := configured(t, client(t, addr), etcdlock.Config{TTL: far}), rand.Text()
					lease := take(ctx, t, l, key)
					<-time.After(held)
					harm(t, lockQueue(key))
					select {
					case <-lease.Done():
					case <-ctx.Done():
						t.Fatal("the holder is not notified")
					}
					if !errors.Is(lease.Err(), dlock.ErrLost) {
						t.Errorf("Err = %v, want ErrLost", lease.Err())
					}
				})
			})
		}
	}
}

// A waiter whose lease is gone must stop waiting, and must not get the key when the holder releases it.
func TestWaiterWhoseLeaseIsGone(t *testing.T) {
	t.Parallel()
	ctx, addr := bounded(t), testbedtest.Etcd(t)
	admin := client(t, addr)
	t.Run("wrong", func(t *testing.T) {
		testbedtest.Steady(t, func(t testing.TB) {
			holder, waiter, key := session(t, client(t, addr)), session(t, client(t, addr)), rand.Text()
			if err := concurrency.NewMutex(holder, key).Lock(ctx); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			returned := make(chan error, 1)
			go func() { returned <- concurrency.NewMutex(waiter, key).Lock(short) }()
			testbedtest.Eventually(t, "the waiter", func() bool { return len(keysOf(t, admin, key+"/")) == 2 })
			if _, err := admin.Revoke(ctx, waiter.Lease()); err != nil {
				t.Fatal(err)
			}
			if err := <-returned; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lock = %v: it does not wait on, so the trap is gone", err)
			}
		})
	})
	for how, harm := range harms(admin) {
		for _, ahead := range []int{1, 3} {
			for hearing, options := range map[string][]grpc.DialOption{
				"": nil, ", without messages": {grpc.WithChainStreamInterceptor(deaf)},
				", and the reason comes late": {grpc.WithChainUnaryInterceptor(lateReason)},
				", before it watches":         {grpc.WithChainStreamInterceptor(lateWatch)},
			} {
				t.Run("right: "+how+hearing, func(t *testing.T) {
					t.Parallel()
					testbedtest.Steady(t, func(t testing.TB) {
						ctx := bounded(t)
						key := rand.Text()
						others := locker(t, client(t, addr))
						first := take(ctx, t, others, key)
						over, leave := context.WithCancel(ctx)
						defer leave()
						for n := 1; n < ahead; n++ {
							go locker(t, client(t, addr)).Acquire(over, key) // callers of one process would share a place
							testbedtest.Eventually(t, "the others", func() bool { return len(keysOf(t, admin, lockQueue(key))) == n+1 })
						}
						l := configured(t, client(t, addr, options...), etcdlock.Config{TTL: far})
						returned := make(chan error, 1)
						go func() { _, err := l.Acquire(ctx, key); returned <- err }()
						testbedtest.Eventually(t, "the waiter", func() bool { return len(keysOf(t, admin, lockQueue(key))) == ahead+1 })
						harm(t, lockQueue(key))
						if strings.HasSuffix(hearing, "watches") {
							<-time.After(time.Second / 2) // it watches now, and has not polled by itself yet
						}
						leave()
						release(ctx, t, first)
						if err := <-returned; !errors.Is(err, dlock.ErrLost) || !errors.Is(err, dlock.ErrUncertain) {
							t.Errorf("Acquire = %v, want ErrUncertain and ErrLost", err)
						}
					})
				})
			}
		}
	}
}

func take(ctx context.Context, t testing.TB, l dlock.Locker, key string) *dlock.Lease {
	t.Helper()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lease.Release(context.WithoutCancel(ctx)) })
	return lease
}

func release(ctx context.Context, t testing.TB, lease *dlock.Lease) {
	t.Helper()
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
}
