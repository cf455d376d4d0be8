package dlock_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest/memsem"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/semlock"
)

// Readers share a key, and a writer has it alone.
func ExampleRWLocker() {
	ctx := context.Background()
	prices := semlock.RWMutex(memsem.New(memsem.Config{Permits: 10}), 10)

	one, _ := prices.AcquireRead(ctx, "prices")
	two, _ := prices.AcquireRead(ctx, "prices")
	_, err := prices.TryAcquire(ctx, "prices")
	fmt.Println("write alongside readers:", errors.Is(err, dlock.ErrHeld))
	one.Release(ctx)
	two.Release(ctx)

	writer, _ := prices.TryAcquire(ctx, "prices")
	fmt.Println("greater token:", writer.Fence().Token > two.Fence().Token)
	_, err = prices.TryAcquireRead(ctx, "prices")
	fmt.Println("read alongside a writer:", errors.Is(err, dlock.ErrHeld))
	writer.Release(ctx)
	// Output:
	// write alongside readers: true
	// greater token: true
	// read alongside a writer: true
}

// The textbook's read/write lock, of a mutex and ten permits.
func Example_textbookRW() {
	ctx := context.Background()
	permits := memsem.New(memsem.Config{Permits: 10})
	rw := textbookRW{memlock.New(memlock.Config{}), permits, 10}

	writer, _ := rw.Acquire(ctx, "prices") // the mutex and all ten permits
	_, err := rw.TryAcquireRead(ctx, "prices")
	fmt.Println(errors.Is(err, dlock.ErrHeld))
	fmt.Println(writer.Release(ctx))
	reader, err := rw.TryAcquireRead(ctx, "prices") // one permit
	fmt.Println(err)
	reader.Release(ctx)
	// Output:
	// true
	// <nil>
	// <nil>
}
