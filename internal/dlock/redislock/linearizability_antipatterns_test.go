package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// counting is the textbook lock with a bare counter for a fencing token, and with a release
// that does not check the owner.
type counting struct{ rdb redis.UniversalClient }

// Acquire implements [dlock.Locker].
func (l counting) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	for pause := time.Duration(0); ; {
		lease, err := l.TryAcquire(ctx, key)
		if pause = (backoff.Decorrelated{}).Next(pause); !errors.Is(err, dlock.ErrHeld) || !backoff.Sleep(ctx, pause) {
			return lease, err
		}
	}
}

// TryAcquire implements [dlock.Locker].
func (l counting) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	taken, err := l.rdb.SetNX(ctx, key, "locked", ttl).Result()
	if err != nil {
		return nil, err
	}
	if !taken {
		return nil, dlock.ErrHeld
	}
	token, err := l.rdb.Incr(ctx, key+":fence").Uint64()
	if err != nil {
		return nil, err
	}
	return dlock.NewLease(ctx, dlock.Grant{
		Key: key, Fence: dlock.Fence{Token: token, Owner: rand.Text()},
		Release: func(ctx context.Context) error { return l.rdb.Del(ctx, key).Err() },
	}), nil
}

// TestHistoryCatchesTheTextbookLock shows that the histories see two of its faults:
// without them the checks of this package would mean little.
func TestHistoryCatchesTheTextbookLock(t *testing.T) {
	t.Parallel()
	illegal := func(t testing.TB, h *dlocktest.History) {
		t.Helper()
		if got := porcupine.CheckOperationsTimeout(dlocktest.LockModel(), h.Operations(), time.Minute); got != porcupine.Illegal {
			t.Errorf("the check says %v: it does not see the fault, or the fault is gone", got)
		}
	}
	t.Run("a token repeats itself after a failover to a lagging replica", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			master, replica := replicated(t)
			h, key := dlocktest.NewHistory(), rand.Text()
			before, after := h.Locker(counting{redistest.Client(t, master.URL())}), h.Locker(counting{redistest.Client(t, replica.URL())})
			cycle(t, before, key)
			testbedtest.Eventually(t, "replication", func() bool { return get(t, redistest.Client(t, replica.URL()), key+":fence") == "1" })
			h.AddGhosts(1, key)
			h.LoseAll(func() {
				command(t, replica, "REPLICAOF", "127.0.0.1", "1")
				cycle(t, before, key)
				if err := master.Kill(); err != nil {
					t.Fatal(err)
				}
				command(t, replica, "REPLICAOF", "NO", "ONE")
			})
			cycle(t, after, key)
			illegal(t, h)
		})
	})
	t.Run("a late release frees the lock of another", func(t *testing.T) {
		t.Parallel()
		testbedtest.Steady(t, func(t testing.TB) {
			rdb := redistest.Client(t, testbedtest.Redis(t))
			h, key := dlocktest.NewHistory(), rand.Text()
			late, holder, third := h.Locker(counting{rdb}), h.Locker(counting{rdb}), h.Locker(counting{rdb})
			first := take(t, late, key)
			h.Pause(func() { rdb.Del(t.Context(), key) }, late) // as if its TTL had passed
			second := take(t, holder, key)
			first.Release(t.Context())
			take(t, third, key).Release(t.Context())
			second.Release(t.Context())
			illegal(t, h)
		})
	})
}

func take(t testing.TB, c *dlocktest.HistoryClient, key string) *dlocktest.HistoryLease {
	t.Helper()
	lease, err := c.TryAcquire(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func cycle(t testing.TB, c *dlocktest.HistoryClient, key string) {
	t.Helper()
	if err := take(t, c, key).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
