package cohort_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

// Three busy instances get an equal number of leases from a lock service that is first come, first served, however much
// each has to do.
func TestThreeInstancesGetEqualLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lock := memlock.New(memlock.Config{})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var mu sync.Mutex
		leases := make([]map[uint64]int, 3) // by fence: items
		var callers sync.WaitGroup
		var groups []*group
		for i := range 3 {
			leases[i] = make(map[uint64]int)
			group := cohort.New(config{
				Hold: over(lock), MaxBatch: 10,
				Commit: func(_ context.Context, _ string, f dlock.Fence, items []int) error {
					time.Sleep(3 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					leases[i][f.Token] += len(items)
					return nil
				},
			})
			groups = append(groups, group)
			for range 200 >> i {
				callers.Go(func() {
					for ctx.Err() == nil {
						if err := group.Do(ctx, ctx, "a", 0); err != nil && ctx.Err() == nil {
							t.Error(err)
						}
					}
				})
			}
		}
		callers.Wait()
		most, least := 0, 1<<30
		for i, g := range groups {
			if err := g.Wait(t.Context()); err != nil {
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
