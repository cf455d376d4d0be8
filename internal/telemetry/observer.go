package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// Observer counts orders, retries and fence rejections. It is safe for concurrent use.
type Observer struct {
	orders, retries, fenced metric.Int64Counter
}

var _ order.Observer = (*Observer)(nil)

// The label values. Each has a counter from the start, because a rate over a
// counter that begins at 1 misses the first event.
var (
	outcomes = labels("outcome", "accepted", "out_of_stock", "over_limit", "queued", "rejected", "replayed",
		"concurrency_limit", "invalid", "lock_timeout", "unavailable", "unknown", "cancelled", "error")
	reasons = labels("reason", "fenced", "lost", "conflict")
)

// labels returns an option for each value of key.
func labels(key string, values ...string) map[string]metric.AddOption {
	m := make(map[string]metric.AddOption, len(values))
	for _, v := range values {
		m[v] = metric.WithAttributeSet(attribute.NewSet(attribute.String(key, v)))
	}
	return m
}

// NewObserver returns an observer whose counters are those of mp, at 0.
func NewObserver(ctx context.Context, mp metric.MeterProvider) (*Observer, error) {
	m := mp.Meter(scope)
	orders, err1 := m.Int64Counter("shop_orders_total",
		metric.WithDescription("Orders that clients asked for, by outcome."))
	retries, err2 := m.Int64Counter("shop_order_retries_total",
		metric.WithDescription("Attempts to place an order that were retried, by reason."))
	fenced, err3 := m.Int64Counter("shop_fence_rejections_total",
		metric.WithDescription("Writes that the database refused because of a stale fencing token."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("telemetry: order metrics: %w", err)
	}
	for _, l := range outcomes {
		orders.Add(ctx, 0, l)
	}
	for _, l := range reasons {
		retries.Add(ctx, 0, l)
	}
	fenced.Add(ctx, 0)
	return &Observer{orders: orders, retries: retries, fenced: fenced}, nil
}

// Placed implements [order.Observer].
func (o *Observer) Placed(ctx context.Context, err error) {
	o.orders.Add(ctx, 1, outcomes[outcome(err)])
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

// outcome returns the label of an order's outcome. Errors wrap one another, and the most important
// error wins: an order that may exist is never counted as refused.
func outcome(err error) string {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil:
		return "accepted"
	case is(order.ErrOutcomeUnknown):
		return "unknown"
	case errors.As(err, new(*stock.ShortageError)):
		return "out_of_stock"
	case errors.As(err, new(*order.LimitError)):
		return "over_limit"
	case is(order.ErrQueued):
		return "queued"
	case errors.As(err, new(*order.StateError)): // a queued order was rejected
		return "rejected"
	case errors.As(err, new(*idempotency.AnsweredError)):
		return "replayed"
	case is(order.ErrConcurrencyLimit):
		return "concurrency_limit"
	case is(order.ErrInvalid, order.ErrUnknownSKU, idempotency.ErrReused):
		return "invalid"
	case is(stock.ErrUnavailable, stock.ErrStrategyUnavailable, stock.ErrUnknownStrategy):
		return "unavailable"
	case is(stock.ErrBusy, order.ErrStopping, context.DeadlineExceeded):
		return "lock_timeout"
	case is(context.Canceled):
		return "cancelled"
	}
	return "error"
}
