package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/stock"
)

// Audit returns the audits of all SKUs.
type Audit func(ctx context.Context) ([]stock.Audit, error)

const (
	auditInterval = 10 * time.Second // least time from one audit to the next
	auditTimeout  = time.Minute      // of one audit
)

// pausePerAudit bounds the load of audits on the database: the pause after an audit is this many times its duration.
const pausePerAudit = 20

// WatchOversold registers shop_oversold_units, the sum over the SKUs of each strategy in the latest audit, and
// shop_audit_age_seconds, the age of that audit. A collection of metrics does not wait for an audit. If the latest audit is
// older than the interval, the collection requests another one, which run starts; after a long audit, run pauses first.
// The caller must call run, which blocks until ctx ends and returns nil. Calls of audit never overlap, and audit should return
// soon after its context ends. If the latest audit failed, both gauges are absent and shop_audit_failures_total is higher by 1.
func WatchOversold(mp metric.MeterProvider, audit Audit) (run func(ctx context.Context) error, err error) {
	m := mp.Meter(scope)
	units, err1 := newOversoldUnits(m)
	age, err2 := newAuditAge(m)
	failed, err3 := newAuditFailures(m)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("telemetry: oversold units: %w", err)
	}
	o := &oversold{audit: audit, requested: make(chan struct{}, 1)}
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
		case o.requested <- struct{}{}:
		default:
		}
		return nil // an error would keep every other metric from being exported
	}, units, age, failed)
	if err != nil {
		return nil, fmt.Errorf("telemetry: oversold units: %w", err)
	}
	return o.run, nil
}

// oversold keeps the latest audit.
type oversold struct {
	audit     Audit
	requested chan struct{} // of capacity 1: metrics were collected

	mu       sync.Mutex
	units    map[string]int64 // by strategy; nil: unknown
	at       time.Time        // when the latest audit began
	failures int64
}

// run audits after a collection of metrics, and then pauses.
func (o *oversold) run(ctx context.Context) error {
	for {
		select {
		case <-o.requested:
		case <-ctx.Done():
			return nil
		}
		start := time.Now()
		o.refresh(ctx)
		if !backoff.Sleep(ctx, max(auditInterval-time.Since(start), pausePerAudit*time.Since(start))) {
			return nil
		}
	}
}

// refresh runs an audit. If it fails, the previous result is dropped as well.
func (o *oversold) refresh(ctx context.Context) {
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	audits, err := o.audit(limited)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.units, o.at = nil, start
	if err != nil {
		o.failures++
		return
	}
	o.units = make(map[string]int64)
	for _, a := range audits {
		o.units[a.Strategy] += a.Oversold()
	}
}
