package dlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/memlock"
)

// Two processes take from the same stock, one after the other.
func ExampleDo() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	stock := 5
	for range 2 {
		err := dlock.Do(ctx, locker, "sku-1", func(context.Context, dlock.Fence) error {
			if stock < 3 {
				return errors.New("sold out")
			}
			stock -= 3
			return nil
		})
		fmt.Println(err, stock)
	}
	// Output:
	// <nil> 2
	// sold out 2
}

// Work that one of many should do, and the others can skip.
func ExampleLocker_tryAcquire() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	for range 2 {
		lease, err := locker.TryAcquire(ctx, "report")
		switch {
		case errors.Is(err, dlock.ErrHeld):
			fmt.Println("somebody else is at it")
		case err != nil:
			fmt.Println(err)
		default:
			fmt.Println("at work")
			defer lease.Release(ctx)
		}
	}
	// Output:
	// at work
	// somebody else is at it
}

// The work stops when the lease is lost, and the error says so.
func ExampleDo_loss() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{TTL: 30 * time.Millisecond})
	err := dlock.Do(ctx, locker, "sku-1", func(ctx context.Context, _ dlock.Fence) error {
		locker.Expire("sku-1") // as if this process had slept through its TTL
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, dlock.ErrLost))
	lost, _ := errors.AsType[*dlock.LostError](err)
	fmt.Println(lost.Reason)
	// Output:
	// true
	// expired
}

// row is a resource that checks fences, as a row in a database would.
type row struct {
	fence dlock.Fence
	value string
}

func (r *row) write(f dlock.Fence, value string) error {
	if !f.Passes(r.fence) {
		return dlock.ErrFenced
	}
	r.fence, r.value = f, value
	return nil
}

// The resource refuses the late write of a holder that has lost its lease.
func ExampleFence_Passes() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	var r row

	late, _ := locker.Acquire(ctx, "row")
	locker.Expire("row") // the holder does not notice yet
	next, _ := locker.Acquire(ctx, "row")

	fmt.Println(r.write(next.Fence(), "from the new holder"))
	fmt.Println(r.write(late.Fence(), "from the old holder"))
	fmt.Println(r.write(next.Fence(), "from the new holder, again"))
	fmt.Println(r.value)

	fmt.Println(errors.Is(late.Release(ctx), dlock.ErrLost))
	fmt.Println(next.Release(ctx))
	// Output:
	// <nil>
	// dlock: fence is stale
	// <nil>
	// from the new holder, again
	// true
	// <nil>
}
