package lab

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/shop/internal/dlock/redislock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/redisx"
	"example.com/shop/internal/stock"
)

// heatWorker is an instance without HTTP. Its buyers place the orders of each sale of its task, when it continues.
func heatWorker(ctx context.Context, w *Worker) error {
	store, err := w.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	rdb, err := redisx.New(w.Task["redis"])
	if err != nil {
		return err
	}
	locker, err := redislock.New(rdb, redislock.Config{})
	if err != nil {
		return err
	}
	repeats := &repeats{}
	orders := order.NewService(store, stock.NewStrategies(stock.Lockers{Redis: locker}), order.Config{Observer: repeats})
	number, err := strconv.Atoi(w.Task["number"])
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(w.Task["orders"])
	if err != nil {
		return err
	}
	for sale := range strings.SplitSeq(w.Task["sales"], ",") {
		if err := w.Stops(pointReady, ""); err != nil {
			return err
		}
		strategy, heat, _ := strings.Cut(sale, ":")
		before := repeats.Load()
		accepted, err := buyAll(ctx, orders, heatSKUs(strategy, heat), number, each)
		if err != nil {
			return err
		}
		w.Says(pointDone, "%d %d", accepted, repeats.Load()-before)
	}
	return orders.Wait(ctx)
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
func (*repeats) Placed(context.Context, error) {}

// Retried implements [order.Observer].
func (r *repeats) Retried(_ context.Context, reason error) {
	if errors.Is(reason, stock.ErrConflict) {
		r.Add(1)
	}
}
