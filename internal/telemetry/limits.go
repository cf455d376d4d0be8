package telemetry

import (
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/dlock/permits"
)

// WatchPermits registers metrics of the permits of this instance.
func WatchPermits(mp metric.MeterProvider, stats func() permits.Stats) error {
	return watchState(mp, "permits", []instrument{
		{"shop_permits", "Limit of orders in flight, over all instances."},
		{"shop_permits_leased", "Permits that this instance has leased."},
		{"shop_permits_in_use", "Orders in flight at this instance."},
		{"shop_permits_instances", "Instances that share the permits, as last read by this instance."},
		{"shop_permits_degraded", "1 while the store is unavailable and this instance serves its equal share, or else 0."},
		{"shop_permits_degraded_admissions_total", "Orders that were admitted while the store was unavailable."},
		{"shop_permits_refused_total", "Orders that were refused because no permit was free."},
		{"shop_permits_store_calls_total", "Calls to the store for permits."},
	}, func() []int64 {
		s := stats()
		return []int64{
			int64(s.Permits), int64(s.Leased), int64(s.InUse), int64(s.Instances),
			number(s.Degraded), s.Unshared, s.Rejected, s.Calls,
		}
	})
}

// WatchAdaptiveLimit registers shop_permits_adaptive_limit, the number of permits that this instance uses under overload.
func WatchAdaptiveLimit(mp metric.MeterProvider, limit func() int) error {
	return watchState(mp, "adaptive limit", []instrument{{
		"shop_permits_adaptive_limit",
		"Orders in flight beyond which this instance, by the load that it measures, refuses orders.",
	}}, func() []int64 { return []int64{int64(limit())} })
}

// WatchWaitlist registers shop_waitlist_size, the number of orders that wait for units at this instance.
func WatchWaitlist(mp metric.MeterProvider, size func() int) error {
	return watchState(mp, "waitlist", []instrument{
		{"shop_waitlist_size", "Orders that wait at this instance for released units."},
	}, func() []int64 { return []int64{int64(size())} })
}
