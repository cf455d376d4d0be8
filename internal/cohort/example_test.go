package cohort_test

import (
	"context"
	"fmt"
	"sync"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

// Five callers add to one account. While the first one's change is being written the others
// gather, and are written together.
func ExampleGroup() {
	var (
		lock    = memlock.New(memlock.Config{})
		balance int
		writing = make(chan struct{})
		writes  int
	)
	group := cohort.New(cohort.Config[string, dlock.Fence, int]{
		Hold: func(ctx context.Context, key string, fn func(context.Context, dlock.Fence) error) error {
			return dlock.Do(ctx, lock, key, fn)
		},
		Commit: func(_ context.Context, _ string, _ dlock.Fence, amounts []int) error {
			if writes++; writes == 1 {
				<-writing
			}
			for _, a := range amounts {
				balance += a
			}
			return nil
		},
	})
	ctx := context.Background()
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() {
			if err := group.Do(ctx, ctx, "account", 10); err != nil {
				fmt.Println(err)
			}
		})
	}
	close(writing)
	callers.Wait()
	fmt.Println(balance, writes <= 5)
	// Output: 50 true
}
