package main

import (
	"context"
	"errors"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/buyers"
)

// fault is something that goes wrong for a while.
type fault struct {
	name  string
	lasts time.Duration
	begin func(ctx context.Context) error
	end   func(ctx context.Context) error
}

// auditEvery is longer than the pause between two audits of an instance.
const auditEvery = 12 * time.Second

// The faults, in the order in which they happen.
const (
	oversold = iota
	cutOff
	killed
	slowDatabase
	noDatabase
)

// faults returns them. Each is over when its end returns.
func (s *shop) faults() []fault {
	return []fault{
		oversold: {"a SKU is sold without a lock", auditEvery, s.oversell, func(context.Context) error { return nil }},
		cutOff: {
			"the network to the stores is interrupted", 4 * time.Second, // a lease lasts 2 s
			func(ctx context.Context) error {
				s.database.BlackHole()
				backoff.Sleep(ctx, 2*burst) // orders have locks then
				s.redis.BlackHole()
				return nil
			},
			func(context.Context) error { return errors.Join(s.redis.Pass(), s.database.Pass()) },
		},
		killed: {
			"shop-3 is killed, and started again", 8 * time.Second,
			func(context.Context) error { return s.kill(2) },
			func(ctx context.Context) error { return s.start(ctx, 2) },
		},
		slowDatabase: {
			"the database is slow", 8 * time.Second,
			func(context.Context) error { s.database.Delay(150 * time.Millisecond); return nil },
			func(context.Context) error { s.database.Delay(0); return nil },
		},
		noDatabase: {
			"the database refuses connections", auditEvery,
			func(context.Context) error { s.database.Refuse(); return nil },
			func(context.Context) error { return s.database.Pass() },
		},
	}
}

// oversell sells a SKU by a strategy that oversells.
func (s *shop) oversell(ctx context.Context) error {
	shop := buyers.New(nil, 32)
	shop.URLs = s.urls
	defer shop.Close()
	sku := "naive-" + time.Now().Format("150405")
	if err := shop.Stock(ctx, sku, unsafe[0], 20); err != nil {
		return err
	}
	shop.Sell(ctx, sku, 160, func(buyers.Outcome, int, time.Duration) {})
	return nil
}

// happen lets the fault begin and end. It ends even if ctx ends earlier.
func (f fault) happen(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	backoff.Sleep(ctx, f.lasts)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	return f.end(ctx)
}
