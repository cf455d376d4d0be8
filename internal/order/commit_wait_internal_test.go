package order

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/dlock/memlock"
)

// Wait waits for the leases and transactions of orders whose callers have left, also for those that began during a long transaction.
func TestWaitOutlastsEveryTransaction(t *testing.T) {
	for _, sku := range []string{"a", "redis/a", "conditional/a", "naive/a"} {
		t.Run(sku, func(t *testing.T) {
			bubble(t, inRounds, func(r *rig) {
				end, began := r.fill(), time.Now()
				ctx, giveUp := context.WithCancel(r.Context())
				left := r.do(ctx, "1", sku)
				c := r.commit("1")
				if wanted := map[bool]time.Duration{false: longTransaction}[sku == "naive/a"]; time.Since(began) != wanted {
					r.Errorf("it began after %v", time.Since(began))
				}
				giveUp()
				if err := <-left; err == nil {
					r.Error("the order has ended before its transaction")
				}
				end()
				waited := make(chan error, 1)
				go func() { waited <- r.service.Wait(r.Context()) }()
				r.waits(waited)
				c.answer <- nil
				r.ended(waited, nil)
			})
		})
	}
}

// Three busy instances get an equal number of leases from a lock service that is first come, first served, however much
// each has to do.
func TestThreeInstancesGetEqualLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := memlock.New(memlock.Config{})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var callers sync.WaitGroup
		rigs, leases := make([]*rig, 3), make([]map[uint64]bool, 3) // by fence
		for i := range rigs {
			var mu sync.Mutex
			leases[i], rigs[i] = make(map[uint64]bool), newRig(t, lock, byLeaders)
			rigs[i].judge = func(batches []*Batch) error {
				time.Sleep(3 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				leases[i][batches[0].Claims[0].Fence.Token] = true
				return nil
			}
			for range 200 >> i {
				callers.Go(func() {
					for ctx.Err() == nil {
						if err := rigs[i].queue.do(rigs[i].entry(ctx, "1", "a")); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
		}
		callers.Wait()
		most, least := 0, 1<<30
		for i, r := range rigs {
			if err := r.service.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			most, least = max(most, len(leases[i])), min(least, len(leases[i]))
		}
		t.Logf("%d leases at most, %d at least", most, least)
		if 5*most > 6*least || least < 100 {
			t.Errorf("the instances had between %d and %d leases, more than a fifth apart", least, most)
		}
	})
}
