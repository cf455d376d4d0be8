package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// TestRWAndCondOnCluster runs both conformance tests where keys live on three masters, over the
// failure of a master.
func TestRWAndCondOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	c := testbedtest.StartCluster(t)
	rwAndCond(t, redistest.ClusterURL(c), func(ctx context.Context) error {
		old, err := c.KillMasterOf(ctx, redistest.RWKey("any"))
		if err != nil {
			return err
		}
		return c.WaitForFailover(ctx, redistest.RWKey("any"), old)
	})
}

// TestRWAndCondBehindSentinel runs both conformance tests behind sentinels, over a failover.
func TestRWAndCondBehindSentinel(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	group := testbedtest.StartSentinel(t)
	rwAndCond(t, redistest.SentinelURL(group), func(ctx context.Context) error {
		old, err := group.Master(ctx)
		if err == nil {
			err = old.Kill()
		}
		if err != nil {
			return err
		}
		return group.WaitForFailover(ctx, old)
	})
}

// rwAndCond runs the conformance tests before and after a failover. Clients from before it continue: their next writer
// has a newer fencing token, and their next wait is woken.
func rwAndCond(t *testing.T, url string, fail func(ctx context.Context) error) {
	t.Helper()
	open := func(t testing.TB) redis.UniversalClient { return redistest.Watched(t, redistest.Client(t, url)) }
	suites := func(t *testing.T) {
		t.Run("rw", func(t *testing.T) {
			t.Parallel()
			dlocktest.RunRW(t, redistest.RWHarnessOn(t, open))
		})
		t.Run("cond", func(t *testing.T) {
			t.Parallel()
			dlocktest.RunCond(t, condHarnessOn(t, open))
		})
	}
	t.Run("before", suites)
	ctx := inTime(t)
	rdb := open(t)
	rw, locks := redistest.RW(t, rdb, redisrw.Config{}), locker(t, rdb)
	cond := condition(t, locks, "a")
	first, _ := retried(ctx, t, rw, "any"), retried(ctx, t, locks, "any")
	if err := fail(ctx); err != nil {
		t.Fatal(err)
	}
	if second := retried(ctx, t, rw, "any"); second.Token <= first.Token {
		t.Errorf("fence %+v follows %+v", second, first)
	}
	retried(ctx, t, locks, "any") // connected to the new master
	woken := make(chan error, 1)
	lease := redistest.MustTake(t, locks.Acquire, "any")
	go func() {
		next, err := cond.Wait(ctx, lease)
		if err == nil {
			err = next.Release(ctx)
		}
		woken <- err
	}()
	testbedtest.Eventually(t, "the sleeper", func() bool { return condWaiting(t, rdb, "any") == 1 })
	wake(t, locks, "any", cond.Signal)
	select {
	case err := <-woken:
		if err != nil {
			t.Errorf("Wait = %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the signal was lost")
	}
	t.Run("after", suites)
}
