package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
)

// buyers is how many place orders at once, each of its own SKU.
const buyers = 8

// compare runs pairs of sales, and prints the median of their ratios.
func compare(ctx context.Context, old, fresh *sqlstore.Store, pairs int, d time.Duration, out io.Writer) error {
	var ratios []float64
	for pair := range pairs {
		var rates [2]float64
		for turn := range 2 {
			which := (pair + turn) % 2 // the order changes, as the second sale may profit
			var err error
			if rates[which], err = sell(ctx, []*sqlstore.Store{old, fresh}[which], fmt.Sprint("sale-", pair), d); err != nil {
				return err
			}
		}
		ratios = append(ratios, rates[0]/rates[1])
		fmt.Fprintf(out, "aged %.0f, empty %.0f orders/s: %.2f\n", rates[0], rates[1], rates[0]/rates[1])
	}
	fmt.Fprintf(out, "median ratio %.2f, want at least 0.90\n", slices.Sorted(slices.Values(ratios))[pairs/2])
	return nil
}

// sell has buyers place orders, of which they pay every second one, and returns the orders per second.
func sell(ctx context.Context, s *sqlstore.Store, prefix string, d time.Duration) (rate float64, err error) {
	var (
		placed atomic.Int64
		sides  sync.WaitGroup
		errs   = make([]error, buyers)
		end    = time.Now().Add(d)
	)
	for side := range buyers {
		sku := fmt.Sprint(prefix, "-", side)
		if _, _, err := s.CreateSKU(ctx, stock.Level{SKU: sku, Strategy: "conditional", OnHand: 1 << 40}); err != nil {
			return 0, err
		}
		sides.Go(func() {
			for n := 0; time.Now().Before(end) && errs[side] == nil; n++ {
				errs[side] = buy(ctx, s, sku, n)
				placed.Add(1)
			}
		})
	}
	sides.Wait()
	return float64(placed.Load()) / d.Seconds(), errors.Join(errs...)
}

func buy(ctx context.Context, s *sqlstore.Store, sku string, n int) error {
	r := &order.Request{TTL: time.Hour, Order: order.Order{
		ID: order.NewID(), CustomerID: fmt.Sprint("customer-", n), Items: []order.Item{{SKU: sku, Quantity: 1}},
	}}
	b := &order.Batch{Claims: []stock.Claim{{SKU: sku, Update: stock.Conditional}}, Requests: []*order.Request{r}}
	if err := errors.Join(s.Commit(ctx, b), r.Err); err != nil || n%2 == 0 {
		return err
	}
	_, _, err := s.Settle(ctx, order.Target{ID: r.Order.ID}, order.Confirmed, "p")
	return err
}
