package dlock_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/semlock"
)

// At most three requests work on a hot product at a time. One more is turned
// away at once instead of queueing up behind them.
func ExampleSemaphore() {
	ctx := context.Background()
	var permits dlock.Semaphore = memsem.New(memsem.Config{Permits: 3})

	large, _ := permits.Acquire(ctx, "sku-1", 2)
	small, _ := permits.TryAcquire(ctx, "sku-1", 1)

	_, err := permits.TryAcquire(ctx, "sku-1", 1)
	fmt.Println("busy:", errors.Is(err, dlock.ErrHeld))
	_, err = permits.Acquire(ctx, "sku-1", 4)
	fmt.Println("never:", errors.Is(err, dlock.ErrInvalidPermits))

	fmt.Println(large.Release(ctx), small.Release(ctx))
	// Output:
	// busy: true
	// never: true
	// <nil> <nil>
}

// The number of permits follows what the database can take.
func ExampleResizer() {
	ctx := context.Background()
	permits := memsem.New(memsem.Config{Permits: 1})
	first, _ := permits.TryAcquire(ctx, "sku-1", 1)
	defer first.Release(ctx)

	_, err := permits.TryAcquire(ctx, "sku-1", 1)
	fmt.Println(errors.Is(err, dlock.ErrHeld))
	fmt.Println(permits.Resize(ctx, "sku-1", 2))
	second, err := permits.TryAcquire(ctx, "sku-1", 1)
	fmt.Println(err)
	defer second.Release(ctx)
	// Output:
	// true
	// <nil>
	// <nil>
}

// A semaphore with one permit is a lock.
func ExampleMutex() {
	ctx := context.Background()
	locker := semlock.Mutex(memsem.New(memsem.Config{Permits: 1}))
	err := dlock.Do(ctx, locker, "sku-1", func(ctx context.Context, _ dlock.Fence) error {
		_, err := locker.TryAcquire(ctx, "sku-1")
		return err // this is another owner, even in the same process
	})
	fmt.Println(errors.Is(err, dlock.ErrHeld))
	// Output:
	// true
}
