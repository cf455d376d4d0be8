// Code generated from internal/telemetry/schema.yaml. DO NOT EDIT.

package otellock

import "go.opentelemetry.io/otel/metric"

func newLeaseLost(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.lease.lost", metric.WithUnit("{lease}"), metric.WithDescription("Leases that ended without being released."))
}

func newLockHold(m metric.Meter) (metric.Float64Histogram, error) {
	return m.Float64Histogram("shop.lock.hold", metric.WithUnit("s"), metric.WithDescription("Time from the grant of a lock to the end of its lease."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
}

func newLockRefused(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.lock.refused", metric.WithUnit("{call}"), metric.WithDescription("Calls that got no lease."))
}

func newLockWait(m metric.Meter) (metric.Float64Histogram, error) {
	return m.Float64Histogram("shop.lock.wait", metric.WithUnit("s"), metric.WithDescription("Time that callers waited for a lock."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30))
}

func newLockWaiters(m metric.Meter) (metric.Int64UpDownCounter, error) {
	return m.Int64UpDownCounter("shop.lock.waiters", metric.WithUnit("{call}"), metric.WithDescription("Calls that wait for a lock."))
}

func newLocksHeld(m metric.Meter) (metric.Int64UpDownCounter, error) {
	return m.Int64UpDownCounter("shop.locks.held", metric.WithUnit("{key}"), metric.WithDescription("Keys of leases that have not ended."))
}
