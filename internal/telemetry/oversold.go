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

	"example.com/shop/internal/stock"
)

// Audit returns the audits of all SKUs.
type Audit func(ctx context.Context) ([]stock.Audit, error)

// OversoldConfig configures [WatchOversold].
type OversoldConfig struct {
	Interval time.Duration // least time from one audit to the next; default 10 s
	Timeout  time.Duration // of one audit; default 2 s
}

// WatchOversold makes shop_oversold_units show what audit finds, summed over
// the SKUs of each strategy. audit runs when metrics are collected and the
// latest result is older than the interval, never twice at once, and should
// return soon after its context has ended. While the latest audit failed, the
// gauge is absent and shop_audit_failures_total has grown.
func WatchOversold(mp metric.MeterProvider, audit Audit, c OversoldConfig) error {
	m := mp.Meter(scope)
	units, err1 := m.Int64ObservableGauge("shop_oversold_units",
		metric.WithDescription("Units promised to customers beyond those that ever existed; must stay 0."))
	failed, err2 := m.Int64ObservableCounter("shop_audit_failures_total",
		metric.WithDescription("Audits of the books for shop_oversold_units that gave no answer."))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("telemetry: oversold units: %w", err)
	}
	o := &oversold{
		audit:    audit,
		interval: cmp.Or(c.Interval, 10*time.Second),
		timeout:  cmp.Or(c.Timeout, 2*time.Second),
	}
	_, err := m.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		byStrategy, failures := o.latest(ctx)
		for strategy, n := range byStrategy {
			to.ObserveInt64(units, n, metric.WithAttributes(attribute.String("strategy", strategy)))
		}
		to.ObserveInt64(failed, failures)
		return nil // an error would keep every other metric from being exported
	}, units, failed)
	if err != nil {
		return fmt.Errorf("telemetry: oversold units: %w", err)
	}
	return nil
}

// oversold remembers the latest audit.
type oversold struct {
	audit    Audit
	interval time.Duration
	timeout  time.Duration

	mu       sync.Mutex // held during an audit: whoever collects meanwhile waits for its result
	next     time.Time  // when the latest audit is too old
	units    map[string]int64
	failures int64
}

// latest returns the units by strategy, which the caller must not change, or
// nil when they are unknown, and how many audits have failed.
func (o *oversold) latest(ctx context.Context) (units map[string]int64, failures int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !time.Now().Before(o.next) {
		o.refresh(ctx)
		o.next = time.Now().Add(o.interval)
	}
	return o.units, o.failures
}

// refresh runs an audit, and forgets the former one in any case.
func (o *oversold) refresh(ctx context.Context) {
	o.units = nil
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	audits, err := o.audit(ctx)
	if err != nil {
		o.failures++
		return
	}
	o.units = make(map[string]int64)
	for _, a := range audits {
		o.units[a.Strategy] += a.Oversold()
	}
}
