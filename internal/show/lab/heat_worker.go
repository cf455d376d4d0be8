package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/stock"
)

// heatWorker is an instance without HTTP. Its buyers place the orders of each sale of its task, when it continues.
func heatWorker(ctx context.Context, w *Worker) {
	store := w.store(ctx)
	defer store.Close()
	locker := must(redislock.New(must(redisclient.New(w.Task["redis"])), redislock.Config{}))
	repeats := &repeats{}
	orders := order.NewService(store, stock.NewStrategies(stock.Lockers{Redis: locker}), order.Config{Observer: repeats})
	number := must(strconv.Atoi(w.Task["number"]))
	each := must(strconv.Atoi(w.Task["orders"]))
	for sale := range strings.SplitSeq(w.Task["sales"], ",") {
		w.Stops(pointReady, "")
		strategy, heat, _ := strings.Cut(sale, ":")
		before := repeats.Load()
		accepted := must(buyAll(ctx, orders, heatSKUs(strategy, heat), number, each))
		w.Says(pointDone, "%d %d", accepted, repeats.Load()-before)
	}
	check(orders.Wait(ctx))
}

// buyAll lets each buyer of a process place orders, one after the other, and returns how many were accepted.
func buyAll(ctx context.Context, orders *order.Service, skus []string, process, each int) (int64, error) {
	var accepted atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, heatBuyers)
	for i := range heatBuyers {
		buyer := process*heatBuyers + i
		group.Go(func() {
			for n := range each {
				_, err := orders.Place(ctx, order.Purchase{
					Customer: fmt.Sprintf("buyer-%d-%d", buyer, n), Items: []order.Item{{SKU: skus[buyer%len(skus)], Quantity: 1}},
				})
				if err != nil {
					errs[i] = err
					return
				}
				accepted.Add(1)
			}
		})
	}
	group.Wait()
	return accepted.Load(), errors.Join(errs...)
}

// repeats counts attempts that were made again, because the row had changed since it was read.
type repeats struct{ atomic.Int64 }

// Placed implements [order.Observer].
func (*repeats) Placed(context.Context, string, error) {}

// Committing implements [order.Observer].
func (*repeats) Committing(context.Context, int) {}

// Waited implements [order.Observer].
func (*repeats) Waited(context.Context, time.Duration, int) {}

// Retried implements [order.Observer].
func (r *repeats) Retried(_ context.Context, reason error) {
	if errors.Is(reason, stock.ErrConflict) {
		r.Add(1)
	}
}
