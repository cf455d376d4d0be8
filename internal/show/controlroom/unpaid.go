package controlroom

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
)

const (
	unpaidOrders = 100
	unpaidTTL    = 10 * time.Second
	unpaidNumber = 90 // of the instance that places them, so that it is none of the others
)

// placeUnpaid has orders placed that nobody pays, by an instance of its own whose orders expire soon. All instances release their units.
// It returns when the orders are placed.
func (r *Room) placeUnpaid(ctx context.Context) error {
	if !r.placing.TryLock() {
		return conflict{errors.New("orders are being placed already")}
	}
	defer r.placing.Unlock()
	if r.unpaid == nil {
		limited, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		f, err := fleet.Start(limited, fleet.Config{
			Executable: r.Executable, Dir: r.stores.Dir, First: unpaidNumber, N: 1, Env: append(r.stores.Env(), traceEnv()...),
			Args: []string{"--order-ttl", unpaidTTL.String()},
		})
		if err != nil {
			return unavailable{err}
		}
		r.mu.Lock()
		r.unpaid = f
		r.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	shop := buyers.New(r.unpaid.URLs(), 8)
	defer shop.Close()
	sku := "unpaid-" + strings.ToLower(rand.Text()[:6])
	if err := shop.Stock(ctx, sku, "conditional", unpaidOrders); err != nil {
		return unavailable{err}
	}
	if sale := shop.Sell(ctx, sku, unpaidOrders, func(buyers.Outcome, int, time.Duration) {}); sale.Errors > 0 {
		return unavailable{errors.New(sale.FirstError)}
	}
	return nil
}
