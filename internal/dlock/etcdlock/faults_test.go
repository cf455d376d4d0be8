package etcdlock_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// awaitEnd waits until lease has ended, for two TTLs at most.
func awaitEnd(t testing.TB, lease *dlock.Lease) {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(2 * ttl):
		t.Fatal("the holder is not notified of the loss")
	}
	if !errors.Is(lease.Err(), dlock.ErrLost) {
		t.Errorf("Err = %v, want ErrLost", lease.Err())
	}
}

// A server that restarts empty counts its revisions from the start. The fencing tokens that
// it gives out are low then: a resource refuses them, and never takes one for a newer
// one than it is.
func TestServerThatLosesItsData(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
		l, key := locker(t, client(t, server.Addr())), rand.Text()
		for range 5 {
			release(ctx, t, take(ctx, t, l, key))
		}
		before := take(ctx, t, l, key)
		if err := errors.Join(server.Kill(), server.RestartEmpty(ctx)); err != nil {
			t.Fatal(err)
		}
		awaitEnd(t, before)
		var next *dlock.Lease
		testbedtest.Eventually(t, "the lock", func() (ok bool) {
			var err error
			next, err = l.TryAcquire(ctx, key)
			return err == nil
		})
		defer next.Release(ctx)
		if next.Fence().Token >= before.Fence().Token { // many attempts use up many revisions
			t.Errorf("fence %+v follows %+v", next.Fence(), before.Fence())
		} else if next.Fence().Passes(before.Fence()) {
			testbedtest.Final(t, "fence %+v follows %+v and passes", next.Fence(), before.Fence())
		}
		if same := (dlock.Fence{Token: before.Fence().Token, Owner: next.Fence().Owner}); same.Passes(before.Fence()) {
			testbedtest.Final(t, "a token that was issued twice passes: %+v after %+v", same, before.Fence())
		}
	})
}

// A server that stalls, or that is gone, grants nothing, and refuses nothing either.
func TestServerThatIsUnavailable(t *testing.T) {
	t.Parallel()
	for how, stop := range map[string]func(*testbed.Etcd) error{"stalls": (*testbed.Etcd).Pause, "is gone": (*testbed.Etcd).Kill} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			testbedtest.Steady(t, func(t testing.TB) {
				ctx := bounded(t)
				server := testbedtest.StartEtcd(t, testbed.EtcdConfig{})
				l, key := locker(t, client(t, server.Addr())), rand.Text()
				lease := take(ctx, t, l, key)
				start := time.Now()
				if err := stop(server); err != nil {
					t.Fatal(err)
				}
				unavailable(ctx, t, l, key)
				unavailable(ctx, t, l, rand.Text())
				if d := time.Since(start); d > 4*ttl/3+ttl {
					t.Errorf("four attempts took %v", d)
				}
				awaitEnd(t, lease)
				if d := time.Since(start); d > 3*ttl {
					t.Errorf("the lease ended after %v, its TTL is %v", d, ttl)
				}
				if how == "stalls" {
					harm(t, server.Resume)
				} else {
					harm(t, func() error { return server.Restart(ctx) })
				}
				testbedtest.Eventually(t, "the lock", func() bool {
					next, err := l.TryAcquire(ctx, key)
					return err == nil && next.Release(ctx) == nil
				})
			})
		})
	}
}

// unavailable checks that both ways to acquire key fail, and neither as if it was held.
func unavailable(ctx context.Context, t testing.TB, l dlock.Locker, key string) {
	t.Helper()
	for _, acquire := range []func(context.Context, string) (*dlock.Lease, error){l.Acquire, l.TryAcquire} {
		lease, err := acquire(ctx, key)
		if err == nil {
			t.Errorf("granted with fence %+v, and nobody is there to grant it", lease.Fence())
		}
		if errors.Is(err, dlock.ErrHeld) || ctx.Err() != nil {
			t.Errorf("Acquire = %v, want that etcd is unavailable", err)
		}
	}
}

// A server whose disk is full refuses new leases. The outcome is known, and holders keep what
// they have, and can release it.
func TestServerWithoutSpace(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx := bounded(t)
		server := testbedtest.StartEtcd(t, testbed.EtcdConfig{Args: []string{"--quota-backend-bytes", "4000000"}})
		cli := client(t, server.Addr())
		l, key := locker(t, cli), rand.Text()
		lease := take(ctx, t, l, key)
		testbedtest.Eventually(t, "the alarm", func() bool {
			_, err := cli.Put(ctx, "ballast/"+rand.Text(), string(bytes.Repeat([]byte("x"), 1<<20)))
			return err != nil
		})
		_, err := l.Acquire(ctx, rand.Text())
		if err == nil || errors.Is(err, dlock.ErrUncertain) || errors.Is(err, dlock.ErrHeld) {
			t.Errorf("Acquire = %v, want the refusal", err)
		}
		if _, err := l.TryAcquire(ctx, key); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire of what is held = %v, want ErrHeld", err)
		}
		<-time.After(4 * ttl / 3) // it is renewed meanwhile
		release(ctx, t, lease)
	})
}
