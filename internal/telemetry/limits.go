package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/permits"
)

// WatchPermits makes metrics show what stats says about the permits of this instance.
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
	all := gauge("", "Orders that may be placed at once, over all instances.")
	leased := gauge("_leased", "Permits that this instance has leased.")
	used := gauge("_in_use", "Orders that this instance is placing.")
	instances := gauge("_instances", "Instances that share the permits, as this one has seen last.")
	alone := gauge("_alone", "1 while this instance serves its share without the store, or else 0.")
	unshared := counter("_unshared_total", "Orders that were admitted while this instance served its share without the store.")
	refused := counter("_refused_total", "Orders that were refused for want of a permit.")
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
		to.ObserveInt64(alone, number(s.Degraded))
		to.ObserveInt64(unshared, s.Unshared)
		to.ObserveInt64(refused, s.Rejected)
		to.ObserveInt64(calls, s.Calls)
		return nil
	}, all, leased, used, instances, alone, unshared, refused, calls)
	if err != nil {
		return fmt.Errorf("telemetry: permits: %w", err)
	}
	return nil
}

// WatchUsable makes shop_permits_usable show how many permits this instance uses at most under the load that it measures.
func WatchUsable(mp metric.MeterProvider, usable func() int) error {
	_, err := mp.Meter(scope).Int64ObservableGauge("shop_permits_usable",
		metric.WithDescription("Orders that this instance places at once under the load that it measures; beyond them it refuses orders early."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(usable()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("telemetry: usable permits: %w", err)
	}
	return nil
}

// WatchWaiting makes shop_waiting show how many orders wait for units at this instance.
func WatchWaiting(mp metric.MeterProvider, waiting func() int) error {
	_, err := mp.Meter(scope).Int64ObservableGauge("shop_waiting",
		metric.WithDescription("Orders that wait at this instance for units that others give back."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			to.Observe(int64(waiting()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("telemetry: waiting orders: %w", err)
	}
	return nil
}
