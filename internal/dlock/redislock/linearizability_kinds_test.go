package redislock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/dlocktest/redistest"
	"example.com/shop/internal/dlock/redisrw"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// everything is what runs through the histories in which no data is lost. Readers
// may have an older fencing token after a failover, and a condition has no data of its own.
func everything() []contender {
	return append(contenders(), readersAndWriters(), conditions())
}

// readersAndWriters is the read/write lock.
func readersAndWriters() contender {
	return contender{
		name: "rw", permits: dlocktest.RWPermits,
		model: func(bool) porcupine.Model { return dlocktest.RWModel() },
		open: func(t testing.TB, h *dlocktest.History, rdb redis.UniversalClient) *dlocktest.HistoryClient {
			return h.RW(redistest.RW(t, rdb, redisrw.Config{}))
		},
	}
}

// conditions is a lock with a condition. Two clients signal, the others wait.
func conditions() contender {
	return contender{
		name: "cond", permits: 1,
		model: dlocktest.CondModel,
		open: func(t testing.TB, h *dlocktest.History, rdb redis.UniversalClient) *dlocktest.HistoryClient {
			l := locker(t, rdb)
			return h.Cond(l, condition(t, l, "a"))
		},
		run: func(ctx context.Context, l dlocktest.Load, clients ...*dlocktest.HistoryClient) {
			load := dlocktest.CondLoad{Keys: l.Keys, Signals: 2, Quiet: ttl / 3, MaxWait: l.MaxWait, Seed: l.Seed}
			load.Run(ctx, clients...)
		},
	}
}

// TestHistoryOfConditions is without faults: no wait may end without a signal.
func TestHistoryOfConditions(t *testing.T) {
	t.Parallel()
	histories(t, []contender{conditions()}, 2, false, func(t testing.TB, tr *trial) {
		tr.load.MaxWait = time.Minute
		tr.during(t, tr.clients(t, 8, testbedtest.Redis(t)), func() {
			sleep(t, time.Duration(testbedtest.Size(2, 20))*time.Second)
		})
	})
}

// TestHistoryOfResizes changes the number of permits under load, up and down, so
// that waiters are served or refused by it.
func TestHistoryOfResizes(t *testing.T) {
	t.Parallel()
	testbedtest.Steady(t, func(t testing.TB) {
		all := contenders()
		for _, c := range all {
			if c.name != "semaphore" {
				continue
			}
			c.trial(t, 2, false, func(t testing.TB, tr *trial) {
				url := testbedtest.Redis(t)
				keeper := tr.clients(t, 2, url)
				tr.during(t, tr.clients(t, 7, url), func() {
					var wg sync.WaitGroup
					for i, c := range keeper {
						random := rand.New(rand.NewPCG(tr.load.Seed, uint64(i)))
						wg.Go(func() {
							for range testbedtest.Size(100, 1000) {
								if err := c.Resize(t.Context(), tr.load.Keys[random.IntN(2)], 1+random.IntN(2*historyPermits)); err != nil {
									t.Error(err)
								}
								sleep(t, time.Duration(random.Int64N(int64(30*time.Millisecond))))
							}
						})
					}
					wg.Wait()
				})
			})
		}
	})
}
