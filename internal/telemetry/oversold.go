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
	Timeout  time.Duration // of one audit; default 1 min
}

// restPerAudit is how many times as long as an audit took there is none afterwards: audits of large books take long, and are not
// what a database is for.
const restPerAudit = 20

// WatchOversold makes shop_oversold_units show what audit finds, summed over the SKUs of each strategy, and
// shop_audit_age_seconds how long ago that was. No collection of metrics waits for an audit. One that finds the latest older than the
// interval has run, which must be called, start another, unless one has taken long lately. run blocks until ctx ends and
// returns nil. audit is never called twice at once, and should return soon after its context has ended. While the latest audit
// failed, both gauges are absent and shop_audit_failures_total has grown.
func WatchOversold(mp metric.MeterProvider, audit Audit, c OversoldConfig) (run func(ctx context.Context) error, err error) {
	m := mp.Meter(scope)
	units, err1 := m.Int64ObservableGauge("shop_oversold_units",
		metric.WithDescription("Units promised to customers beyond those that ever existed; must stay 0."))
	age, err2 := m.Float64ObservableGauge("shop_audit_age_seconds",
		metric.WithDescription("Age of the audit that shop_oversold_units comes from."))
	failed, err3 := m.Int64ObservableCounter("shop_audit_failures_total",
		metric.WithDescription("Audits of the books for shop_oversold_units that gave no answer."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("telemetry: oversold units: %w", err)
	}
	o := &oversold{
		audit:    audit,
		interval: cmp.Or(c.Interval, 10*time.Second),
		timeout:  cmp.Or(c.Timeout, time.Minute),
		wanted:   make(chan struct{}, 1),
	}
	_, err = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		for strategy, n := range o.units {
			to.ObserveInt64(units, n, metric.WithAttributes(attribute.String("strategy", strategy)))
		}
		if o.units != nil {
			to.ObserveFloat64(age, time.Since(o.at).Seconds())
		}
		to.ObserveInt64(failed, o.failures)
		select {
		case o.wanted <- struct{}{}:
		default:
		}
		return nil // an error would keep every other metric from being exported
	}, units, age, failed)
	if err != nil {
		return nil, fmt.Errorf("telemetry: oversold units: %w", err)
	}
	return o.run, nil
}

// oversold remembers the latest audit.
type oversold struct {
	audit    Audit
	interval time.Duration
	timeout  time.Duration
	wanted   chan struct{} // has room for one: somebody collects

	mu       sync.Mutex
	units    map[string]int64 // by strategy; nil: unknown
	at       time.Time        // when the latest audit began
	failures int64
}

// run audits when somebody collects, and rests afterwards.
func (o *oversold) run(ctx context.Context) error {
	for {
		select {
		case <-o.wanted:
		case <-ctx.Done():
			return nil
		}
		began := time.Now()
		o.refresh(ctx)
		rest := max(o.interval-time.Since(began), restPerAudit*time.Since(began))
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh runs an audit, and forgets the former one in any case.
func (o *oversold) refresh(ctx context.Context) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	audits, err := o.audit(limited)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.units, o.at = nil, began
	if err != nil {
		o.failures++
		return
	}
	o.units = make(map[string]int64)
	for _, a := range audits {
		o.units[a.Strategy] += a.Oversold()
	}
}
