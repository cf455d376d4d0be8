package memlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

func TestMain(m *testing.M) { testbedtest.Main(m) }

func TestLocker(t *testing.T) {
	l := memlock.New(memlock.Config{TTL: 10 * time.Second})
	dlocktest.Run(t, dlocktest.Harness{
		New:       func(testing.TB) dlock.Locker { return l },
		TTL:       10 * time.Second,
		Expire:    func(_ testing.TB, key string) { l.Expire(key) },
		FIFO:      true,
		Reentrant: true,
		Capped: func(_ testing.TB, limit time.Duration) dlock.Locker {
			return memlock.New(memlock.Config{TTL: 10 * time.Second, MaxHold: limit})
		},
		Bubble: synctest.Test,
	})
}

// A holder that does not renew and does not release is succeeded by the waiters.
func TestWaitersFollowAnExpiredGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New(memlock.Config{TTL: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first, err := l.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		defer first.Release(ctx)
		var order []int
		var waiters sync.WaitGroup
		for i := range 3 {
			waiters.Go(func() {
				lease, err := l.Acquire(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				l.Expire("k")
				select {
				case <-lease.Done():
				case <-ctx.Done():
					t.Error("the lease continues")
					lease.Release(ctx)
				}
			})
			synctest.Wait()
		}
		start := time.Now()
		l.Expire("k")
		if lease, err := l.TryAcquire(ctx, "k"); !errors.Is(err, dlock.ErrHeld) {
			t.Errorf("TryAcquire = %v, want ErrHeld: others have waited", err)
			lease.Release(ctx)
		}
		waiters.Wait()
		if d := time.Since(start); d > 40*time.Second {
			t.Errorf("three expiries took %v, want a TTL each at most", d)
		}
		if !slices.IsSorted(order) {
			t.Errorf("granted in the order %v", order)
		}
	})
}
