package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// patientCond returns a condition whose waiters ask again once a second only.
func patientCond(t testing.TB, rdb redis.UniversalClient) (*redislock.Locker, *redislock.Cond) {
	t.Helper()
	l, err := redislock.New(rdb, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.Closing(t, l.Close)
	return l, condition(t, l, "a")
}

// sleepers starts n waits with key, and returns when all of them wait for a signal.
func sleepers(t testing.TB, rdb redis.UniversalClient, l *redislock.Locker, c *redislock.Cond, key string, n int) (wait func() []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			lease, err := l.Acquire(ctx, key)
			if err == nil {
				lease, err = c.Wait(ctx, lease)
			}
			if err == nil {
				err = lease.Release(ctx)
			}
			errs[i] = err
		})
	}
	testbedtest.Eventually(t, "those who wait for a signal", func() bool {
		return rdb.ZCard(t.Context(), lockKey(key)+":cond:a").Val() == int64(n)
	})
	return func() []error { wg.Wait(); return errs }
}

func wake(t testing.TB, l *redislock.Locker, key string, f func(ctx context.Context, l *dlock.Lease) error) {
	t.Helper()
	lease := redistest.MustTake(t, l.Acquire, key)
	if err := f(t.Context(), lease); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A broadcast moves more waiters than one script does, and each gets the key.
func TestCondLargeBroadcast(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		const waiters = 150
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		l, c := patientCond(t, rdb)
		wait := sleepers(t, rdb, l, c, key, waiters)
		lease := redistest.MustTake(t, l.Acquire, key)
		if err := c.Broadcast(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if n := rdb.ZCard(t.Context(), lockKey(key)+":queue").Val(); n != waiters {
			t.Errorf("%d of %d waiters are in the queue of the lock", n, waiters)
		}
		lease.Release(t.Context())
		if err := errors.Join(wait()...); err != nil {
			t.Error(err)
		}
	})
}

// A waiter gets the grant by a notification, not by asking again; when notifications are lost it
// gets the grant by asking again.
func TestCondHandOff(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		admin, key := redistest.Client(t, server.URL()), rand.Text()
		l, c := patientCond(t, redistest.Client(t, server.URL()))
		once := func() time.Duration {
			wait := sleepers(t, admin, l, c, key, 1)
			start := time.Now()
			wake(t, l, key, c.Signal)
			if err := wait()[0]; err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		var pushed []time.Duration
		for range 9 {
			pushed = append(pushed, once())
		}
		slices.Sort(pushed)
		t.Logf("woken within %v", pushed)
		if pushed[3] > 400*time.Millisecond { // polls of its own come after 800
			t.Errorf("most signals took more than %v, as if no grant had been notified", pushed[3])
		}
		ctx, stop := context.WithCancel(t.Context())
		var killer sync.WaitGroup
		killer.Go(func() {
			for ctx.Err() == nil {
				admin.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
			}
		})
		for range 3 {
			if d := once(); d > 10*time.Second { // the TTL is 30
				t.Errorf("without notifications a signal took %v", d)
			}
		}
		stop()
		killer.Wait()
	})
}

// A server that loses its data no longer knows which waiters were signalled. So all waiters continue, and none waits
// for ever.
func TestCondOnAServerThatForgets(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		server := testbedtest.StartRedis(t, testbed.RedisConfig{})
		rdb, key := redistest.Client(t, server.URL()), rand.Text()
		l, c := patientCond(t, rdb)
		wait := sleepers(t, rdb, l, c, key, 3)
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := errors.Join(wait()...); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("they continued after %v", d)
		}
	})
}

// A process that dies leaves few data behind, and they expire.
func TestCondLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	redistest.Targets(t, func(t testing.TB, rdb redis.UniversalClient) {
		key := "{" + rand.Text() + "}:order" // with a hash tag of its own
		l, c := patientCond(t, rdb)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		lease := redistest.MustTake(t, l.Acquire, key)
		go func() {
			_, err := c.Wait(ctx, lease)
			done <- err
		}()
		tag := "shop:lock:" + key[:len(key)-len(":order")]
		asleep := tag + ":cond:a:" + key
		testbedtest.Eventually(t, "the waiter", func() bool { return rdb.ZCard(t.Context(), asleep).Val() == 1 })
		if d := rdb.PTTL(t.Context(), asleep).Val(); d <= 0 || d > 10*time.Second {
			t.Errorf("the waiter is kept for %v, want 10 s at most", d)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want the end of its context", err)
		}
		if err := c.Close(t.Context()); err != nil { // where the server was slow, it leaves in the background
			t.Error(err)
		}
		if keys := rdb.Keys(t.Context(), tag+"*").Val(); len(keys) != 1 || keys[0] != tag+":fence:"+key {
			t.Errorf("what is left is %v", keys)
		}
	})
}

func TestCondNames(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		l := locker(t, redistest.Client(t, testbedtest.Redis(t)))
		for _, name := range []string{"", "a:b", "{a}", "a}"} {
			if _, err := redislock.NewCond(l, name); err == nil {
				t.Errorf("the name %q is accepted", name)
			}
		}
	})
}
