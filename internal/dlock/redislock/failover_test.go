package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redissem"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// progress is how long after a failover every key must be free again. It is the longest time that a lost holder keeps
// a key, plus time for clients to find the new master.
const progress = ttl + 5*time.Second

// group is Redis with replicas that take over.
type group struct {
	open func(t testing.TB) redis.UniversalClient
	// fail kills the master of a key, and returns it when another has taken over. At the end
	// of the test it is there again.
	fail func(t testing.TB, key string) *testbed.Redis
}

// TestHistoryBehindSentinel kills the master, and a replica takes over.
func TestHistoryBehindSentinel(t *testing.T) {
	t.Parallel()
	s := testbedtest.StartSentinel(t)
	failover(t, group{
		open: func(t testing.TB) redis.UniversalClient {
			return redistest.Watched(t, redistest.Client(t, redistest.SentinelURL(s)))
		},
		fail: func(t testing.TB, _ string) *testbed.Redis {
			old, err := s.Master(t.Context())
			if err == nil {
				comesBack(t, old, s.WaitReady)
				err = old.Kill()
			}
			if err == nil {
				err = s.WaitForFailover(t.Context(), old)
			}
			if err != nil {
				t.Fatal(err)
			}
			return old
		},
	})
}

// TestHistoryOnCluster kills the master of a key, and its replica takes over.
func TestHistoryOnCluster(t *testing.T) {
	t.Parallel()
	c := testbedtest.StartCluster(t)
	failover(t, group{
		open: func(t testing.TB) redis.UniversalClient {
			return redistest.Watched(t, redistest.Client(t, redistest.ClusterURL(c)))
		},
		fail: func(t testing.TB, key string) *testbed.Redis {
			old, err := c.KillMasterOf(t.Context(), key)
			if err == nil {
				comesBack(t, old, c.WaitReady)
				err = c.WaitForFailover(t.Context(), key, old)
			}
			if err != nil {
				t.Fatal(err)
			}
			return old
		},
	})
}

// comesBack starts a server again at the end of the test, and waits for the others.
func comesBack(t testing.TB, dead *testbed.Redis, ready func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(dead.Restart(ctx), ready(ctx)); err != nil {
			t.Error(err)
		}
	})
}

// failover checks histories through failovers, one after another, and then runs the conformance tests of the
// semaphore on the group.
func failover(t *testing.T, g group) {
	t.Helper()
	t.Run("history", func(t *testing.T) {
		for _, c := range contenders() {
			t.Run(c.name, func(t *testing.T) {
				testbedtest.Steady(t, func(t testing.TB) {
					var dead *testbed.Redis
					c.trial(t, 6, true, func(t testing.TB, tr *trial) { dead = tr.failover(t, g) })
					if dead == nil {
						t.Fatal("no master was killed")
					}
				})
			})
		}
	})
	admin := g.open(t)
	t.Run("semaphore", func(t *testing.T) {
		testbedtest.FullSize(t)
		t.Parallel()
		dlocktest.RunSemaphore(t, dlocktest.SemaphoreHarness{
			New: func(t testing.TB, permits int) dlock.Semaphore {
				return redistest.Semaphore(t, g.open(t), redissem.Config{Permits: permits, TTL: ttl})
			},
			TTL:     ttl,
			FIFO:    true,
			Ordered: true,
			Expire:  func(t testing.TB, key string) { redistest.Expire(t, admin, redistest.SemaphoreKey(key)) },
		})
	})
}

// failover runs the load with a holder, and kills the master of the first key. It checks that the holder is right
// about its lease. Soon after another master has taken over, every key must be free again.
func (tr *trial) failover(t testing.TB, g group) (dead *testbed.Redis) {
	t.Helper()
	tr.least = 10 // most of its time there is no master
	clients := make([]*dlocktest.HistoryClient, 5)
	for i := range clients {
		clients[i] = tr.client(t, g.open(t))
	}
	keeper, late := tr.client(t, g.open(t)), tr.client(t, g.open(t))
	first := tr.load.Keys[0]
	tr.during(t, clients, func() {
		sleep(t, tr.between(ttl/4, ttl/2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		kept, err := keeper.Acquire(ctx, first, tr.permits)
		for err != nil && ctx.Err() == nil { // the failover before may not be over for this client
			kept, err = keeper.Acquire(ctx, first, tr.permits)
		}
		if err != nil {
			t.Error(err)
			return
		}
		tr.AddGhosts(tr.permits, tr.load.Keys...)
		tr.LoseAll(func() { dead = g.fail(t, lockKey(first)) })
		since := time.Now()
		select {
		case <-kept.Done():
		case <-time.After(ttl):
		}
		if kept.Err() == nil {
			if _, err := late.TryAcquire(ctx, first, 1); !errors.Is(err, dlock.ErrHeld) {
				t.Errorf("TryAcquire = %v, and the holder does not know of a loss", err)
			}
		}
		_ = kept.Release(ctx)
		for _, key := range tr.load.Keys {
			tr.takeSoon(ctx, t, late, key)
		}
		if d := time.Since(since); d > progress {
			t.Errorf("every key could be had only %v after the failover", d)
		}
		sleep(t, ttl/2)
	})
	return dead
}

// takeSoon takes a key and releases it, over refusals of a server that is not
// yet, or no longer, the master.
func (tr *trial) takeSoon(ctx context.Context, t testing.TB, c *dlocktest.HistoryClient, key string) {
	t.Helper()
	for {
		lease, err := c.Acquire(ctx, key, 1)
		if err == nil {
			_ = lease.Release(ctx)
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		sleep(t, ttl/40)
	}
}
