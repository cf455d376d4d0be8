package redislock_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// inTime bounds what a failover may take.
func inTime(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestConformanceBehindSentinel runs the conformance tests behind sentinels, and again after a failover.
func TestConformanceBehindSentinel(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	group := testbedtest.StartSentinel(t)
	t.Run("before", func(t *testing.T) { conformance(t, redistest.SentinelURL(group), 200, 0) })
	ctx := inTime(t)
	l, key := locker(t, redistest.Client(t, redistest.SentinelURL(group))), rand.Text()
	first := retried(ctx, t, l, key)
	old, err := group.Master(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := group.WaitForFailover(ctx, old); err != nil {
		t.Fatal(err)
	}
	if second := retried(ctx, t, l, key); second.Token <= first.Token {
		t.Errorf("fence %+v follows %+v", second, first)
	}
	t.Run("after", func(t *testing.T) { conformance(t, redistest.SentinelURL(group), 200, 0) })
}

// TestConformanceOnCluster runs the conformance tests on a cluster, and again after a failover.
func TestConformanceOnCluster(t *testing.T) {
	testbedtest.FullSize(t)
	t.Parallel()
	group := testbedtest.StartCluster(t)
	t.Run("before", func(t *testing.T) { conformance(t, redistest.ClusterURL(group), 200, 0) })
	ctx := inTime(t)
	l, key := locker(t, redistest.Client(t, redistest.ClusterURL(group))), rand.Text()
	first := retried(ctx, t, l, key)
	old, err := group.KillMasterOf(ctx, lockKey(key))
	if err != nil {
		t.Fatal(err)
	}
	if err := group.WaitForFailover(ctx, lockKey(key), old); err != nil {
		t.Fatal(err)
	}
	if second := retried(ctx, t, l, key); second.Token <= first.Token {
		t.Errorf("fence %+v follows %+v", second, first)
	}
	t.Run("after", func(t *testing.T) { conformance(t, redistest.ClusterURL(group), 200, 0) })
}

// retried takes key and releases it, over the failures that a failover brings.
func retried(ctx context.Context, t testing.TB, l dlock.Locker, key string) dlock.Fence {
	t.Helper()
	for {
		lease, err := l.Acquire(ctx, key)
		if err == nil {
			lease.Release(ctx)
			return lease.Fence()
		}
		if ctx.Err() != nil {
			t.Fatalf("Acquire = %v, for as long as a failover may take", err)
		}
		<-time.After(50 * time.Millisecond)
	}
}
