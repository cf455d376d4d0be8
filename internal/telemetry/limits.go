package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/permits"
)

// WatchPermits registers metrics of the permits of this instance.
func WatchPermits(mp metric.MeterProvider, stats func() permits.Stats) error {
	m := mp.Meter(scope)
	var errs []error
	gauge := func(name, what string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge("shop_permits"+name, metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	counter := func(name, what string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter("shop_permits"+name, metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	all := gauge("", "Limit of orders in flight, over all instances.")
	leased := gauge("_leased", "Permits that this instance has leased.")
	used := gauge("_in_use", "Orders in flight at this instance.")
	instances := gauge("_instances", "Instances that share the permits, as last read by this instance.")
	degraded := gauge("_degraded", "1 while the store is unavailable and this instance serves its equal share, or else 0.")
	admissions := counter("_degraded_admissions_total", "Orders that were admitted while the store was unavailable.")
	refused := counter("_refused_total", "Orders that were refused because no permit was free.")
	calls := counter("_store_calls_total", "Calls to the store for permits.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: permits: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		s := stats()
		to.ObserveInt64(all, int64(s.Permits))
		to.ObserveInt64(leased, int64(s.Leased))
		to.ObserveInt64(used, int64(s.InUse))
		to.ObserveInt64(instances, int64(s.Instances))
		to.ObserveInt64(degraded, number(s.Degraded))
		to.ObserveInt64(admissions, s.Unshared)
		to.ObserveInt64(refused, s.Rejected)
		to.ObserveInt64(calls, s.Calls)
		return nil
	}, all, leased, used, instances, degraded, admissions, refused, calls)
	if err != nil {
		return fmt.Errorf("telemetry: permits: %w", err)
	}
	return nil
}

// WatchAdaptiveLimit registers shop_permits_adaptive_limit, the number of permits that this instance uses under overload.
func WatchAdaptiveLimit(mp metric.MeterProvider, limit func() int) error {
	_, err := mp.Meter(scope).Int64ObservableGauge("shop_permits_adaptive_limit",
		metric.WithDescription("Orders in flight beyond which this instance, by the load that it measures, refuses orders."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(limit()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("telemetry: adaptive limit: %w", err)
	}
	return nil
}

// WatchWaitlist registers shop_waitlist_size, the number of orders that wait for units at this instance.
func WatchWaitlist(mp metric.MeterProvider, size func() int) error {
	_, err := mp.Meter(scope).Int64ObservableGauge("shop_waitlist_size",
		metric.WithDescription("Orders that wait at this instance for released units."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(size()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("telemetry: waitlist: %w", err)
	}
	return nil
}
