package telemetry

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/dlock/permits"
)

// WatchPermits registers metrics of the permits of this instance.
func WatchPermits(mp metric.MeterProvider, stats func() permits.Stats) error {
	return watchState(mp, "permits", constructors{
		newPermits, newPermitsLeased, newPermitsInUse, newPermitsInstances,
		newPermitsDegraded, newPermitsDegradedAdmissions, newPermitsRefused, newPermitsStoreCalls,
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
	return watchState(mp, "adaptive limit", constructors{newPermitsAdaptiveLimit}, func() []int64 { return []int64{int64(limit())} })
}

// WatchRates registers shop_rate_limit_refused_total, the number of requests that the rate limit of a customer has refused.
func WatchRates(mp metric.MeterProvider, refused func() int64) error {
	return watchState(mp, "rates", constructors{newRateLimitRefused}, func() []int64 { return []int64{refused()} })
}

// WatchBreaker registers shop_lock_breaker_open for a lock service. unavailable returns why calls to it fail at once, or nil.
func WatchBreaker(mp metric.MeterProvider, backend string, unavailable func() error) error {
	return watchState(mp, "breaker", constructors{newLockBreakerOpen}, func() []int64 { return []int64{number(unavailable() != nil)} },
		attribute.String("backend", backend))
}

// WatchCluster registers metrics of what this instance knows of the cluster.
func WatchCluster(mp metric.MeterProvider, leads func() bool, members func() int) error {
	return watchState(mp, "cluster", constructors{newClusterLeader, newClusterMembers}, func() []int64 {
		return []int64{number(leads()), int64(members())}
	})
}

// WatchWaitlist registers shop_waitlist_size, the number of orders that wait for units at this instance.
func WatchWaitlist(mp metric.MeterProvider, size func() int) error {
	return watchState(mp, "waitlist", constructors{newWaitlistSize}, func() []int64 { return []int64{int64(size())} })
}
