package throughput

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/shop/internal/platform/backoff"
)

const (
	plenty   = 1_000_000_000 // units that no turn can sell
	few      = 200           // units of the turn that sells out
	demand   = 4             // attempts for each of them
	most     = 96            // buyers of that turn: more only keep a lock that is polled from being had
	offering = 8             // SKUs that are made at the same time
)

// offer puts new SKUs on sale.
func (l *lab) offer(ctx context.Context, a *variant, n, units int) ([]string, error) {
	skus := make([]string, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(offering)
	for i := range skus {
		skus[i] = fmt.Sprintf("lab-%s-%s-%d", a.Strategy, l.run, len(a.skus)+i)
		g.Go(func() error { return a.shop.Stock(ctx, skus[i], a.strategy, units) })
	}
	a.skus = append(a.skus, skus...)
	return skus, g.Wait()
}

// fill puts SKUs on sale that nobody buys, and places the orders that are open from the beginning. Both use the last
// strategy.
func (l *lab) fill(ctx context.Context) (err error) {
	a := l.variants[len(l.Strategies)-1]
	b := a.buyers
	if l.Catalog > 0 {
		unwanted := &variant{Variant: Variant{Strategy: "other"}, strategy: a.strategy, shop: a.shop}
		if _, err := l.offer(ctx, unwanted, l.Catalog, plenty); err != nil {
			return err
		}
		l.say("%d other SKUs are on sale", l.Catalog)
	}
	if l.Open == 0 {
		return nil
	}
	if b.skus, err = l.offer(ctx, a, l.SKUs, plenty); err != nil {
		return err
	}
	b.limit = int64(l.Open)
	start := time.Now()
	t := b.run(ctx, start)
	l.say("%d orders are open after %v", t.placed, time.Since(start).Round(time.Second))
	if t.placed != int64(l.Open) {
		return fmt.Errorf("%d of %d orders were placed in advance: %s", t.placed, l.Open, t.firstError)
	}
	return ctx.Err()
}

// turn lets one variant sell for a while.
func (l *lab) turn(ctx context.Context, a *variant, n int) (err error) {
	b := a.buyers
	if b.skus, err = l.offer(ctx, a, l.SKUs, plenty); err != nil {
		return err
	}
	b.rate, b.limit = l.Rate, 0
	from := time.Now().Add(l.WarmUp)
	sale, cancel := context.WithDeadline(ctx, from.Add(l.Duration))
	defer cancel()
	var before counters
	var reading error
	read := make(chan struct{})
	go func() {
		defer close(read)
		backoff.Sleep(sale, time.Until(from))
		before, reading = l.meter.read(ctx)
	}()
	t := b.run(sale, from)
	<-read
	after, err := l.meter.read(ctx)
	if err := errors.Join(ctx.Err(), reading, err); err != nil {
		return err
	}
	a.Placed += t.placed
	a.Refused += t.refused
	a.Errors += t.failed
	if a.firstError == "" {
		a.firstError = t.firstError
	}
	r := t.round(l.Duration, before, after)
	a.Rounds = append(a.Rounds, r)
	l.taken++
	l.say("round %d of %d: %-16s %8.0f orders/s  p50 %7.1f ms  p99 %7.1f ms  (turn %d of %d, %v left)", n+1, l.Rounds, a.Strategy,
		r.OrdersPerSecond, r.P50, r.P99, l.taken, l.turns, l.left())
	return nil
}

// round is what a turn of d says.
func (t *tally) round(d time.Duration, before, after counters) Round {
	at := func(q float64) float64 { return round(float64(t.latencies.ValueAtQuantile(q))/1000, 2) }
	per := func(n int64) float64 { return round(float64(n)/float64(t.placed), 3) }
	r := Round{
		OrdersPerSecond: round(float64(t.placed)/d.Seconds(), 1), P50: at(50), P99: at(99), P999: at(99.9),
		sql: per(after.sql - before.sql), commits: per(after.commits - before.commits), redis: per(after.redis - before.redis),
		cpu: map[string]float64{}, others: round(max(0, (after.others-before.others).Seconds()/d.Seconds()), 3),
	}
	for kind, used := range after.cpu {
		r.cpu[kind] = round((used-before.cpu[kind]).Seconds()*1000/float64(t.placed), 4)
	}
	return r
}

// books sells a SKU out by one variant, and audits that and all that the variant has sold before.
func (l *lab) books(ctx context.Context, a *variant) (err error) {
	b := a.buyers
	if b.skus, err = l.offer(ctx, a, 1, few); err != nil {
		return err
	}
	b.rate, b.limit, b.n = 0, few*demand, min(b.n, most)
	t := b.run(ctx, time.Now())
	if err := ctx.Err(); err != nil {
		return err
	}
	a.Errors += t.failed
	a.AuditOK = true
	for _, sku := range a.skus {
		audits, err := l.store.Audit(ctx, sku)
		if err != nil {
			return err
		}
		a.Oversold += audits[0].Oversold()
		a.Undersold += audits[0].Undersold()
		a.LostUpdates += audits[0].LostUpdates()
		a.AuditOK = a.AuditOK && audits[0].OK()
	}
	l.say("audit of %-16s oversold %d, undersold %d, lost updates %d", a.Strategy, a.Oversold, a.Undersold, a.LostUpdates)
	return nil
}
