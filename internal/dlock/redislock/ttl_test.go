package redislock_test

import (
	"context"
	"crypto/rand"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// wantTTL checks that there are keys like pattern, and that each ends by itself.
func wantTTL(t testing.TB, admin redis.UniversalClient, pattern string) {
	t.Helper()
	keys, err := admin.Keys(t.Context(), pattern).Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys %q: %q, %v", pattern, keys, err)
	}
	for _, key := range keys {
		if left, err := admin.PTTL(t.Context(), key).Result(); err != nil || left <= 0 {
			t.Errorf("%s lives for %v, %v", key, left, err)
		}
	}
}

// A waiter that was signalled gives up, and leaves its place to the next: in a queue that
// is a new key then.
func TestQueueOfAnHeirEnds(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		rdb, key := redistest.Client(t, testbedtest.Redis(t)), rand.Text()
		l := locker(t, rdb)
		c, queue := condition(t, l, "a"), lockKey(key)+":queue"
		var waits sync.WaitGroup
		defer waits.Wait()
		short, end := context.WithCancel(ctx)
		defer end()
		for _, ctx := range []context.Context{short, ctx} {
			held, err := l.Acquire(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			waits.Go(func() {
				if lease, err := c.Wait(ctx, held); err == nil {
					lease.Release(ctx)
				}
			})
			testbedtest.Eventually(t, "a waiter", func() bool { return rdb.Exists(ctx, lockKey(key)).Val() == 0 })
		}
		held, err := l.Acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Release(ctx)
		if err := c.Signal(ctx, held); err != nil {
			t.Fatal(err)
		}
		signalled := rdb.ZRange(ctx, queue, 0, 0).Val()
		end()
		testbedtest.Eventually(t, "the heir", func() bool {
			heir := rdb.ZRange(ctx, queue, 0, 0).Val()
			return len(heir) == 1 && len(signalled) == 1 && heir[0] != signalled[0]
		})
		wantTTL(t, rdb, queue)
	})
}
