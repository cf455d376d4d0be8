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

// row is a resource that checks fencing tokens, as a row in a database would.
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
	// dlock: fencing token is stale
	// <nil>
	// from the new holder, again
	// true
	// <nil>
}

// A function that takes the lock itself may be called by one that has it.
func ExampleReenter() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	pack := func(ctx context.Context) error {
		return dlock.Do(ctx, locker, "order-7", func(context.Context, dlock.Fence) error {
			fmt.Println("packed")
			return nil
		})
	}
	err := dlock.Do(ctx, locker, "order-7", func(held context.Context, _ dlock.Fence) error {
		if err := pack(held); err != nil { // the context says that the key is held
			return err
		}
		_, err := locker.TryAcquire(ctx, "order-7") // with any other it is another owner
		fmt.Println(errors.Is(err, dlock.ErrHeld))
		return nil
	})
	fmt.Println(err)
	// Output:
	// packed
	// true
	// <nil>
}

// Two shelves are locked as one, each with a fencing token of its own.
func ExampleMultiLocker() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	lease, err := locker.AcquireAll(ctx, []string{"shelf-2", "shelf-1", "shelf-2"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range lease.Keys() {
		_, err := locker.TryAcquire(ctx, key)
		fmt.Println(key, lease.FenceOf(key) != dlock.Fence{}, errors.Is(err, dlock.ErrHeld))
	}
	fmt.Println(lease.Release(ctx))
	// Output:
	// shelf-1 true true
	// shelf-2 true true
	// <nil>
}

// An operator takes a key away from a holder that is stuck.
func ExampleForceReleaser() {
	ctx := context.Background()
	locker := memlock.New(memlock.Config{})
	lease, _ := locker.Acquire(ctx, "report")
	work, cancel := lease.Context(ctx)
	defer cancel()

	state, _ := locker.Inspect(ctx, "report")
	fmt.Println(state.Held, state.Fence == lease.Fence())
	fmt.Println(locker.ForceRelease(ctx, "report"))
	<-work.Done()
	lost, _ := errors.AsType[*dlock.LostError](context.Cause(work))
	fmt.Println(lost.Reason)
	// Output:
	// true true
	// <nil>
	// forced
}
