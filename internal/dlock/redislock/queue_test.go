package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// spy calls seen with every script call of a client, which it can hold back.
func spy(seen func(cmd redis.Cmder)) testbedtest.RoundTrips {
	return func(ctx context.Context, cmds []redis.Cmder, send redis.ProcessPipelineHook) error {
		for _, cmd := range cmds {
			if strings.HasPrefix(cmd.Name(), "eval") { // and not the greeting of a new connection
				seen(cmd)
			}
		}
		return send(ctx, cmds)
	}
}

// waiting starts to acquire key with l, and returns when it is in the queue.
func waiting(ctx context.Context, t testing.TB, l *redislock.Locker, key string) <-chan *dlock.Lease {
	t.Helper()
	granted := make(chan *dlock.Lease, 1)
	go func() {
		lease, err := l.Acquire(ctx, key)
		if err != nil && ctx.Err() == nil && !errors.Is(err, dlock.ErrUncertain) {
			t.Error(err)
		}
		granted <- lease
	}()
	testbedtest.Eventually(t, "a waiter", func() bool {
		state, err := l.Inspect(t.Context(), key)
		return err == nil && state.Waiters == 1
	})
	return granted
}

// TestForceReleaseWithoutAMessage: a holder that no message reaches gets the reason by its next renewal, or its
// release.
func TestForceReleaseWithoutAMessage(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		for _, taken := range []bool{false, true} {
			l, other, key := locker(t, deaf{rdb}), locker(t, rdb), rand.Text()
			lease, err := l.TryAcquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.ForceRelease(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if taken {
				next, err := other.TryAcquire(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				defer next.Release(t.Context())
			}
			select {
			case <-lease.Done():
			case <-time.After(ttl):
				t.Fatal("the lease continues")
			}
			if lost, ok := errors.AsType[*dlock.LostError](lease.Err()); !ok || lost.Reason != dlock.Forced {
				t.Errorf("Err = %v, want the reason %q", lease.Err(), dlock.Forced)
			}
		}
	})
}

// TestForceReleaseIsNotifiedAtOnce: with a TTL of an hour the holder renews only after minutes.
func TestForceReleaseIsNotifiedAtOnce(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		l, key := configured(t, rdb, redislock.Config{TTL: time.Hour}), rand.Text()
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		process, _, _ := strings.Cut(lease.Fence().Owner, "-")
		testbedtest.Eventually(t, "the subscription", func() bool {
			return rdb.PubSubNumSub(t.Context(), "shop:lock:push:"+process).Val()["shop:lock:push:"+process] == 1
		})
		if err := l.ForceRelease(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		select {
		case <-lease.Done():
		case <-time.After(time.Minute):
			t.Error("the holder is not notified")
		}
	})
}

// TestRenewerIsBatched holds 250 keys and counts the requests that keep them.
func TestRenewerIsBatched(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		rdb := redistest.Client(t, testbedtest.Redis(t))
		var renewals atomic.Int32
		rdb.AddHook(spy(func(cmd redis.Cmder) {
			if strings.HasPrefix(cmd.Name(), "eval") && redistest.Calls(cmd) > 1 { // no other calls of this test share a command
				renewals.Add(1)
			}
		}))
		l := locker(t, rdb)
		var holders sync.WaitGroup
		leave := make(chan struct{})
		for range 250 { // at once, so that they are due at once on a slow machine too
			holders.Go(func() {
				lease, err := l.TryAcquire(t.Context(), rand.Text())
				if err != nil {
					t.Error(err)
					return
				}
				<-leave
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("Release = %v", err)
				}
			})
		}
		<-time.After(3 * ttl / 2)
		testbedtest.Eventually(t, "four times three renewals", func() bool { return renewals.Load() >= 12 }) // each may be late
		n := renewals.Load()
		close(leave)
		holders.Wait()
		if n > 36 {
			t.Errorf("%d requests to renew 250 leases four times, want 3 each time and a few more", n)
		}
	})
}

// TestScriptCacheFlush makes the server forget its scripts all the time.
func TestScriptCacheFlush(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin, l := redistest.Client(t, server.URL()), locker(t, redistest.Client(t, server.URL()))
		key := rand.Text()
		for range 200 {
			if err := admin.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			lease, err := l.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			admin.ScriptFlush(t.Context())
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestCloseEndsTheSubscription checks what 20 clients that have waited leave.
func TestCloseEndsTheSubscription(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin, key := redistest.Client(t, server.URL()), rand.Text()
		channels := func() int { return len(admin.PubSubChannels(t.Context(), "*").Val()) }
		holder := locker(t, admin)
		first, err := holder.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var lockers []*redislock.Locker
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			l := locker(t, redistest.Client(t, server.URL()))
			lockers = append(lockers, l)
			go l.Acquire(ctx, key)
		}
		testbedtest.Eventually(t, "subscriptions", func() bool { return channels() == 21 }) // one per process
		cancel()
		first.Release(t.Context())
		for _, l := range append(lockers, holder) {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		testbedtest.Eventually(t, "no subscription", func() bool { return channels() == 0 })
	})
}

// TestTryAcquireDoesNotOvertake finds the key free, and others in the queue.
func TestTryAcquireDoesNotOvertake(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		l, key := locker(t, rdb), rand.Text()
		first, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		granted := waiting(t.Context(), t, l, key)
		rdb.Del(t.Context(), lockKey(key)) // the holder has died
		if _, err := l.TryAcquire(t.Context(), key); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v, want ErrHeld: another has waited", err)
		}
		select {
		case lease := <-granted:
			lease.Release(t.Context())
		case <-time.After(ttl):
			t.Fatal("the waiter does not get the key")
		}
		first.Release(t.Context())
	})
}
