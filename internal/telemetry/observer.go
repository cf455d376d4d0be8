package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Observer counts orders, retries and fence rejections, and measures transactions. It is safe for concurrent use.
type Observer struct {
	orders, retries, fenced metric.Int64Counter
	size                    metric.Int64Histogram
	wait                    metric.Float64Histogram
	outcomes                sync.Map // strategy to map[string]metric.AddOption, by outcome
}

var _ order.Observer = (*Observer)(nil)

// The label values. Each has a counter from the start, because a rate over a
// counter that begins at 1 misses the first event.
var (
	outcomes = []string{
		"accepted", "out_of_stock", "over_limit", "queued", "rejected", "replayed", "no_permit", "adaptive_limit", "sku_limit",
		"lock_service_limit", "invalid", "lock_timeout", "unavailable", "unknown", "cancelled", "error",
	}
	reasons = labels("reason", []string{"fenced", "lost", "conflict"})
)

// labels returns an option for each value of key, alongside others.
func labels(key string, values []string, others ...attribute.KeyValue) map[string]metric.AddOption {
	m := make(map[string]metric.AddOption, len(values))
	for _, v := range values {
		m[v] = metric.WithAttributeSet(attribute.NewSet(append(others, attribute.String(key, v))...))
	}
	return m
}

// NewObserver returns an observer whose counters are those of mp, at 0.
func NewObserver(ctx context.Context, mp metric.MeterProvider) (*Observer, error) {
	m := mp.Meter(scope)
	orders, err1 := newOrders(m)
	retries, err2 := newOrderRetries(m)
	fenced, err3 := newFenceRejections(m)
	size, err4 := newOrderBatchSize(m)
	wait, err5 := newOrderBatchWait(m)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, fmt.Errorf("telemetry: order metrics: %w", err)
	}
	o := &Observer{orders: orders, retries: retries, fenced: fenced, size: size, wait: wait}
	o.of(ctx, "")
	for _, l := range reasons {
		retries.Add(ctx, 0, l)
	}
	fenced.Add(ctx, 0)
	return o, nil
}

// of returns the labels of a strategy, by outcome. The counters of a strategy begin with its first order.
func (o *Observer) of(ctx context.Context, strategy string) map[string]metric.AddOption {
	all, ok := o.outcomes.Load(strategy)
	if !ok {
		by := labels("outcome", outcomes, attribute.String("strategy", cmp.Or(strategy, "none")))
		if all, ok = o.outcomes.LoadOrStore(strategy, by); !ok {
			for _, l := range by {
				o.orders.Add(ctx, 0, l)
			}
		}
	}
	return all.(map[string]metric.AddOption) //nolint:errcheck,forcetypeassert // Only such are stored.
}

// Placed implements [order.Observer]. The span of ctx gets the strategy and the outcome.
func (o *Observer) Placed(ctx context.Context, strategy string, err error) {
	is := order.Outcome(err)
	o.orders.Add(ctx, 1, o.of(ctx, strategy)[is])
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String("order.strategy", cmp.Or(strategy, "none")), attribute.String("order.outcome", is))
	}
}

// Committing implements [order.Observer].
func (o *Observer) Committing(ctx context.Context, orders int) { o.size.Record(ctx, int64(orders)) }

// Waited implements [order.Observer]. The span of ctx gets the size of the batch, and the wait.
func (o *Observer) Waited(ctx context.Context, d time.Duration, orders int) {
	o.wait.Record(ctx, d.Seconds())
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.Int("order.batch.size", orders), attribute.Float64("order.batch.wait", d.Seconds()))
	}
}

// Retried implements [order.Observer].
func (o *Observer) Retried(ctx context.Context, reason error) {
	switch {
	case errors.Is(reason, dlock.ErrFenced):
		o.fenced.Add(ctx, 1)
		o.retries.Add(ctx, 1, reasons["fenced"])
	case errors.Is(reason, dlock.ErrLost):
		o.retries.Add(ctx, 1, reasons["lost"])
	case errors.Is(reason, stock.ErrConflict):
		o.retries.Add(ctx, 1, reasons["conflict"])
	}
}
