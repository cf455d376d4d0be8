package timeout_test

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// A timer is scheduled with the rows that it is about, and its entry is pushed after
// the commit.
func ExampleQueue() {
	q, err := timeout.New(newMemStore(), memindex.New(memindex.Config{}), timeout.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	expire := func(_ context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		out := make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			fmt.Printf("%s, attempt %d\n", f.ID, f.Attempt)
			out[i] = timeout.Done()
		}
		stop()
		return out, nil
	}
	if err := q.Handle("order.expire", expire, timeout.Options{}); err != nil {
		fmt.Println(err)
		return
	}

	var tx timeout.Tx // the transaction that inserts the order; it commits before the push
	push, err := q.Schedule(ctx, tx, timeout.Timer{Kind: "order.expire", ID: "order-1", Due: time.Now().Add(50 * time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	push()

	fmt.Println(q.Run(ctx))
	// Output:
	// order-1, attempt 1
	// <nil>
}
