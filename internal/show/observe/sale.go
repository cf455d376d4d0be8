package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/buyers"
)

// In the sale, customers of each SKU order a unit at the same moment, twice per second. Two of three pay, and the orders of
// the others expire.
const (
	customers = 3
	burst     = 500 * time.Millisecond
	plenty    = 1_000_000       // units
	few       = 20              // units of a SKU that is nearly always sold out
	fewWait   = 2 * time.Second // how long its customers wait for a unit
)

// unsafe are the strategies that oversell.
var unsafe = []string{"naive", "local"}

// sell sells a SKU by each strategy that is safe, and one that is nearly always sold out, until ctx ends.
func (s *shop) sell(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var sale sync.WaitGroup
	defer sale.Wait()
	defer cancel()
	hasty, patient := buyers.New(nil, customers), buyers.New(nil, customers)
	hasty.URLs, patient.URLs, patient.Wait = s.urls, s.urls, fewWait
	defer hasty.Close()
	defer patient.Close()
	offered, _, err := hasty.Strategies(ctx)
	if err != nil {
		return err
	}
	offer := func(shop *buyers.Shop, sku, strategy string, units, paying int) {
		if err == nil {
			err = hasty.Stock(ctx, sku, strategy, units)
		}
		for c := range customers {
			sale.Go(func() { buy(ctx, shop, sku, c, c < paying) })
		}
	}
	offer(patient, "few", "conditional", few, 0)
	for _, strategy := range offered {
		if !slices.Contains(unsafe, strategy) {
			offer(hasty, "by-"+strategy, strategy, plenty, 2)
		}
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// buy orders a unit of a SKU at each burst, until ctx ends. The metrics of the instances count the responses.
func buy(ctx context.Context, shop *buyers.Shop, sku string, customer int, pays bool) {
	for n := customer; backoff.Sleep(ctx, burst-time.Duration(time.Now().UnixNano())%burst); n++ {
		urls := shop.URLs()
		if len(urls) == 0 {
			continue
		}
		orders := urls[n%len(urls)] + "/api/v1/orders"
		status, _, answer, err := shop.Send(ctx, http.MethodPost, orders, map[string]any{
			"customer_id": fmt.Sprintf("%s-%d-%d", sku, customer, n), "items": []map[string]any{{"sku": sku, "quantity": 1}},
		})
		var order struct{ ID string }
		if err == nil && status == http.StatusCreated && pays && json.Unmarshal(answer, &order) == nil {
			shop.Send(ctx, http.MethodPost, orders+"/"+order.ID+"/pay", map[string]any{"payment_id": order.ID}) //nolint:errcheck // as above
		}
	}
}
