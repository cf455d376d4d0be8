// Code generated from internal/telemetry/schema.yaml. DO NOT EDIT.

package telemetry

import "go.opentelemetry.io/otel/metric"

func newAuditAge(m metric.Meter) (metric.Float64Observable, error) {
	return m.Float64ObservableGauge("shop.audit.age", metric.WithUnit("s"), metric.WithDescription("Age of the audit behind shop_oversold_units."))
}

func newAuditFailures(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.audit.failures", metric.WithUnit("{audit}"), metric.WithDescription("Audits for shop_oversold_units that failed."))
}

func newFenceRejections(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.fence.rejections", metric.WithUnit("{write}"), metric.WithDescription("Writes that the database refused because of a stale fencing token."))
}

func newOrderBatchSize(m metric.Meter) (metric.Int64Histogram, error) {
	return m.Int64Histogram("shop.order.batch.size", metric.WithUnit("{order}"), metric.WithDescription("Orders in a transaction."),
		metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256))
}

func newOrderBatchWait(m metric.Meter) (metric.Float64Histogram, error) {
	return m.Float64Histogram("shop.order.batch.wait", metric.WithUnit("s"), metric.WithDescription("From the arrival of an order in the commit queue to its first transaction."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
}

func newOrderRetries(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.order.retries", metric.WithUnit("{retry}"), metric.WithDescription("Attempts to place an order that were retried, by reason."))
}

func newOrders(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.orders", metric.WithUnit("{order}"), metric.WithDescription("Orders that clients asked for, by outcome and strategy."))
}

func newOversoldUnits(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.oversold.units", metric.WithUnit("{unit}"), metric.WithDescription("Units promised to customers beyond those that ever existed; must stay 0."))
}

func newRateLimitRefused(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.rate_limit.refused", metric.WithUnit("{request}"), metric.WithDescription("Orders and extensions that were refused because of the rate limit of a customer."))
}

func newLockBreakerOpen(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.lock.breaker.open", metric.WithUnit("{breaker}"), metric.WithDescription("1 while the lock service is unavailable and calls fail at once, or else 0."))
}

func newPermits(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits", metric.WithUnit("{permit}"), metric.WithDescription("Limit of orders in flight, over all instances."))
}

func newPermitsAdaptiveLimit(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits.adaptive_limit", metric.WithUnit("{order}"), metric.WithDescription("Orders in flight beyond which this instance, by the load that it measures, refuses orders."))
}

func newPermitsDegraded(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits.degraded", metric.WithUnit("{instance}"), metric.WithDescription("1 while the store is unavailable and this instance serves its equal share, or else 0."))
}

func newPermitsDegradedAdmissions(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.permits.degraded_admissions", metric.WithUnit("{order}"), metric.WithDescription("Orders that were admitted while the store was unavailable."))
}

func newPermitsInUse(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits.in_use", metric.WithUnit("{permit}"), metric.WithDescription("Orders in flight at this instance."))
}

func newPermitsInstances(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits.instances", metric.WithUnit("{instance}"), metric.WithDescription("Instances that share the permits, as last read by this instance."))
}

func newPermitsLeased(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.permits.leased", metric.WithUnit("{permit}"), metric.WithDescription("Permits that this instance has leased."))
}

func newPermitsRefused(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.permits.refused", metric.WithUnit("{attempt}"), metric.WithDescription("Attempts to place an order that were refused because of a limit of orders in flight."))
}

func newPermitsStoreCalls(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.permits.store_calls", metric.WithUnit("{call}"), metric.WithDescription("Calls to the store for permits."))
}

func newWaitlistSize(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.waitlist.size", metric.WithUnit("{order}"), metric.WithDescription("Orders that wait at this instance for released units."))
}

func newTimersClaimed(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.claimed", metric.WithUnit("{timer}"), metric.WithDescription("Timers that were claimed from the index."))
}

func newTimersClaims(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.claims", metric.WithUnit("{claim}"), metric.WithDescription("Claims by consumers: with timers, or empty."))
}

func newTimersDead(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.timers.dead", metric.WithUnit("{timer}"), metric.WithDescription("Stored timers that are dead until an operator redrives or cancels them."))
}

func newTimersDueLag(m metric.Meter) (metric.Float64Observable, error) {
	return m.Float64ObservableGauge("shop.timers.due_lag", metric.WithUnit("s"), metric.WithDescription("Time since the most overdue timer of the kind was due; 0 if none is."))
}

func newTimersFailures(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.failures", metric.WithUnit("{failure}"), metric.WithDescription("Background operations that failed and are retried."))
}

func newTimersFiringDelay(m metric.Meter) (metric.Float64Histogram, error) {
	return m.Float64Histogram("shop.timers.firing_delay", metric.WithUnit("s"), metric.WithDescription("From the due time of a timer, or of its next attempt, to its handler, by the database's clock."),
		metric.WithExplicitBucketBoundaries(0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600))
}

func newTimersHandlerDuration(m metric.Meter) (metric.Float64Histogram, error) {
	return m.Float64Histogram("shop.timers.handler.duration", metric.WithUnit("s"), metric.WithDescription("Duration of a handler for a batch."),
		metric.WithExplicitBucketBoundaries(0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60))
}

func newTimersIndexClockOffset(m metric.Meter) (metric.Float64Gauge, error) {
	return m.Float64Gauge("shop.timers.index.clock_offset", metric.WithUnit("s"), metric.WithDescription("Clock of the index minus clock of this instance."))
}

func newTimersIndexEntriesDropped(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.index.entries_dropped", metric.WithUnit("{entry}"), metric.WithDescription("Index entries that were dropped; a look-ahead pass or the overdue scan finds their timers."))
}

func newTimersNacked(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.nacked", metric.WithUnit("{timer}"), metric.WithDescription("Claims returned unhandled: too early, draining, or a store was unavailable."))
}

func newTimersOpen(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.timers.open", metric.WithUnit("{timer}"), metric.WithDescription("Stored timers that have not fired, or wait for their next attempt."))
}

func newTimersOutcomes(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.outcomes", metric.WithUnit("{timer}"), metric.WithDescription("Timers that a handler received, by outcome."))
}

func newTimersPaused(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.timers.paused", metric.WithUnit("{kind}"), metric.WithDescription("1 if the kind is paused, or else 0."))
}

func newTimersPending(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.timers.pending", metric.WithUnit("{entry}"), metric.WithDescription("Index entries that no consumer has claimed."))
}

func newTimersRepairs(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.repairs", metric.WithUnit("{timer}"), metric.WithDescription("Timers that the overdue scan handled or reassigned; 0 in a healthy system."))
}

func newTimersScheduled(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.scheduled", metric.WithUnit("{timer}"), metric.WithDescription("Timers that were stored, including those whose transaction failed later."))
}

func newTimersWakeups(m metric.Meter) (metric.Int64Counter, error) {
	return m.Int64Counter("shop.timers.wakeups", metric.WithUnit("{poll}"), metric.WithDescription("Polls of the index by a consumer, by cause."))
}

func newEventsDropped(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.dropped", metric.WithUnit("{event}"), metric.WithDescription("Published events that were dropped because the queue to the event log was full."))
}

func newEventsListeners(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.events.listeners", metric.WithUnit("{client}"), metric.WithDescription("Clients that subscribe to the events of this instance."))
}

func newEventsLive(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.events.live", metric.WithUnit("{instance}"), metric.WithDescription("1 while the event log can be read, or else 0."))
}

func newEventsMissed(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.missed", metric.WithUnit("{gap}"), metric.WithDescription("Gaps in the event log, in which events may have been missed."))
}

func newEventsPublished(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.published", metric.WithUnit("{event}"), metric.WithDescription("Events that this instance has published."))
}

func newEventsReceived(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.received", metric.WithUnit("{event}"), metric.WithDescription("Events of all instances that were received from the event log."))
}

func newEventsRefused(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.refused", metric.WithUnit("{subscription}"), metric.WithDescription("Subscriptions refused because there were too many."))
}

func newEventsResets(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.events.resets", metric.WithUnit("{event}"), metric.WithDescription("Reset events, after which a client reloads its state."))
}

func newClusterLeader(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.cluster.leader", metric.WithUnit("{instance}"), metric.WithDescription("1 while this instance leads, or else 0."))
}

func newClusterMembers(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableGauge("shop.cluster.members", metric.WithUnit("{instance}"), metric.WithDescription("Members of the cluster, as this instance last read them."))
}

func newDbClientConnectionCount(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableUpDownCounter("db.client.connection.count", metric.WithUnit("{connection}"), metric.WithDescription("Connections to Redis and the database, by state."))
}

func newDbClientConnectionMax(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableUpDownCounter("db.client.connection.max", metric.WithUnit("{connection}"), metric.WithDescription("Connections to the database that a pool may open."))
}

func newDbClientConnectionTimeouts(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("db.client.connection.timeouts", metric.WithUnit("{timeout}"), metric.WithDescription("Calls that waited for a connection to Redis until their time limit."))
}

func newDbConnectionWaitTime(m metric.Meter) (metric.Float64Observable, error) {
	return m.Float64ObservableCounter("shop.db.connection.wait_time", metric.WithUnit("s"), metric.WithDescription("Time that statements and transactions waited for a connection to the database."))
}

func newDbConnectionWaits(m metric.Meter) (metric.Int64Observable, error) {
	return m.Int64ObservableCounter("shop.db.connection.waits", metric.WithUnit("{wait}"), metric.WithDescription("Statements and transactions that waited for a connection to the database."))
}
