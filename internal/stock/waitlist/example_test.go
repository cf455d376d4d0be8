package waitlist_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/stock/waitlist"
)

// A customer waits for a unit of something that is sold out, until another
// customer cancels.
func Example() {
	locker := memlock.New(memlock.Config{}) // or two of package redislock, and its Cond
	list, err := waitlist.New(waitlist.Config{Lock: locker, Cond: memlock.NewCond(locker)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { list.Run(ctx) })

	var available atomic.Int32
	soldOut := make(chan struct{})
	go func() {
		<-soldOut
		available.Add(1) // and commit
		list.Notify("sku-1")
	}()
	err = list.Wait(ctx, "sku-1", waitlist.Claim{
		Poll: func(context.Context) (bool, error) {
			n := available.Load()
			if n == 0 {
				select {
				case <-soldOut:
				default:
					close(soldOut)
				}
			}
			return n > 0, nil
		},
		Try: func(context.Context) (bool, error) { return available.CompareAndSwap(1, 0), nil },
	})
	fmt.Println("placed:", err == nil)
	stop()
	running.Wait()
	// Output: placed: true
}
