package dlock_test

import (
	"context"
	"fmt"

	"example.com/shop/internal/dlock/memlock"
)

// A picker waits until somebody has delivered, without asking again and again.
func ExampleCond() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	delivered := memlock.NewCond(locker)
	stock := 0 // guarded by the lock

	lease, _ := locker.Acquire(ctx, "sku-1")
	go func() {
		lease, _ := locker.Acquire(ctx, "sku-1") // once the picker waits
		defer lease.Release(ctx)
		stock += 5
		if err := delivered.Signal(ctx, lease); err != nil {
			fmt.Println(err)
		}
	}()
	for stock == 0 {
		next, err := delivered.Wait(ctx, lease)
		if err != nil {
			fmt.Println(err)
			return
		}
		lease = next
	}
	stock--
	fmt.Println("picked one of five, left:", stock)
	fmt.Println(lease.Release(ctx))
	// Output:
	// picked one of five, left: 4
	// <nil>
}
