package demo

import (
	"context"
	"fmt"
	"time"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/show/buyers"
	"example.com/shop/internal/show/fleet"
	"example.com/shop/internal/sqlstore"
)

const (
	unpaid         = 100             // units on sale, and orders that nobody pays
	unpaidTTL      = 3 * time.Second // of those orders
	unpaidSellers  = 3
	unpaidStrategy = "conditional"

	lookEvery = 50 * time.Millisecond
)

// Expiry is the result of the orders that nobody paid. Its JSON form is public.
type Expiry struct {
	Orders int     `json:"orders"`
	Fired  int     `json:"fired"`  // orders whose unit was released
	Early  int     `json:"early"`  // of these, before expires_at
	Lost   int     `json:"lost"`   // not released, although there was time
	Double int     `json:"double"` // orders that ended more than once
	P50    float64 `json:"p50_ms"` // delay from the expiry to the release
	P99    float64 `json:"p99_ms"`

	victim string        // the instance that was killed
	ahead  time.Duration // how long before the first order expired
	second buyers.Sale   // of the released units
	broken []string      // invariants, as the audit names them
	err    string        // the first answer that was neither yes nor no
}

// ok reports whether every order gave its unit back once, at its time, to be
// sold again.
func (e Expiry) ok() bool {
	return e.Orders == unpaid && e.Fired == e.Orders && e.Early == 0 && e.Lost == 0 && e.Double == 0 &&
		e.second.Accepted == unpaid && e.err == "" && len(e.broken) == 0
}

// expiry lets orders expire while one of the instances that place and expire
// them is killed, and sells what comes back.
func (d *demo) expiry(ctx context.Context) (e Expiry, err error) {
	ctx, cancel := context.WithTimeout(ctx, armTimeout)
	defer cancel()
	start, started := context.WithTimeout(ctx, startTimeout)
	defer started()
	// They are numbered on, as instances of the sales may still be there.
	f, err := fleet.Start(start, fleet.Config{
		Executable: d.Executable, Dir: d.stores.Dir, First: d.Instances + 1, N: unpaidSellers,
		Args: []string{"--order-ttl", unpaidTTL.String()}, Env: d.stores.Env(),
	})
	if err != nil {
		return e, err
	}
	defer func() { err = closing(err, f) }()

	sku := "demo-expiry-" + d.run
	first := buyers.New(f.URLs(), customers)
	defer first.Close()
	if err := first.Stock(ctx, sku, unpaidStrategy, unpaid); err != nil {
		return e, err
	}
	placed := first.Sell(ctx, sku, unpaid, func(buyers.Outcome, int, time.Duration) {})
	// The one that has been there longest is the likeliest to lead the others.
	e.victim = f.Instances()[0].Name()
	if err := f.Instances()[0].Kill(); err != nil {
		return e, err
	}
	killed, orders, err := d.books.Fates(ctx, sku)
	if err != nil {
		return e, err
	}
	if len(orders) > 0 {
		e.ahead = orders[0].ExpiresAt.Sub(killed)
	}
	if err := d.awaitReleases(ctx, sku, len(orders)); err != nil {
		return e, err
	}
	back, err := d.books.Audit(ctx, sku)
	if err != nil {
		return e, err
	}

	again := buyers.New(f.URLs()[1:], customers)
	defer again.Close()
	again.Pays = true
	e.second = again.Sell(ctx, sku, unpaid, func(buyers.Outcome, int, time.Duration) {})
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	_, fates, err := d.books.Fates(ctx, sku)
	if err != nil {
		return e, err
	}
	audits, err := d.books.Audit(ctx, sku)
	if err != nil {
		return e, err
	}
	e.judge(placed, orders, fates)
	e.broken = append(back[0].Broken(), audits[0].Broken()...)
	return e, nil
}

// awaitReleases returns when all orders of the SKU have given their units back,
// or have had the time for it.
func (d *demo) awaitReleases(ctx context.Context, sku string, orders int) error {
	bar := d.printer.bar("expiry", max(1, orders))
	defer bar.clear()
	for {
		now, fates, err := d.books.Fates(ctx, sku)
		if err != nil {
			return err
		}
		released := 0
		for _, f := range fates {
			released += min(f.Releases, 1)
		}
		bar.set(released)
		if released == len(fates) || now.After(fates[len(fates)-1].ExpiresAt.Add(d.MaxWait)) {
			return nil
		}
		if !backoff.Sleep(ctx, lookEvery) {
			return context.Cause(ctx)
		}
	}
}

// judge compares what became of the orders, and of those that took their units
// afterwards, with the responses that customers received.
func (e *Expiry) judge(placed buyers.Sale, orders, fates []sqlstore.Fate) {
	first := make(map[string]bool, len(orders))
	for _, o := range orders {
		first[o.OrderID] = true
	}
	e.Orders = len(orders)
	var late buyers.Sale
	for _, f := range fates {
		if f.Releases > 0 && f.ReleasedAt.Before(f.ExpiresAt) {
			e.Early++
		}
		if f.Twice() {
			e.Double++
		}
		switch {
		case !first[f.OrderID]:
		case f.Releases > 0:
			e.Fired++
			late.Latencies = append(late.Latencies, f.ReleasedAt.Sub(f.ExpiresAt))
		default:
			e.Lost++
		}
	}
	late = buyers.Merge([]buyers.Sale{late}, 0) // which sorts
	e.P50, e.P99 = milliseconds(late.Percentile(50)), milliseconds(late.Percentile(99))
	e.err = buyers.Merge([]buyers.Sale{placed, e.second}, 0).FirstError
	if e.err == "" && placed.Accepted != len(orders) {
		e.err = fmt.Sprintf("%d customers received 201, and there are %d orders", placed.Accepted, len(orders))
	}
}
