// Package telemetry sets up the traces, metrics and logs of an instance with OpenTelemetry, and returns them as values.
// The only global is OpenTelemetry's error handler for failed exports.
//
// # Traces
//
// Every request has a trace, so that its log lines share a trace_id. With an
// OTLP endpoint, OTEL_TRACES_SAMPLER decides which spans are sampled (default: all), and
// batches of spans are exported over HTTP. Without an endpoint, spans carry only ids.
//
// # Metrics
//
// All metrics are on /metrics of the admin listener. With an OTLP endpoint they are pushed as
// well. An instrument has the name that Prometheus shows, so that one search
// finds both. No client can choose the value of a label: the strategy of a
// SKU is a label, the SKU is not.
//
//	shop_orders_total{outcome}        orders that clients asked for, by outcome
//	shop_order_retries_total{reason}  attempts that were retried: fenced, lost, conflict
//	shop_fence_rejections_total       writes that the database refused because of a stale fencing token
//	shop_oversold_units{strategy}     units promised beyond those that exist: must stay 0
//	shop_audit_age_seconds            age of the audit behind shop_oversold_units
//	shop_audit_failures_total         audits for shop_oversold_units that failed
//	shop_permits, _leased, _in_use, _adaptive_limit, _instances, _degraded,
//	_degraded_admissions_total, _refused_total, _store_calls_total
//	                                  see [WatchPermits] and [WatchAdaptiveLimit]
//	shop_waitlist_size                orders that wait for units
//	shop_events_*                     see [WatchEvents]
//
// shop_oversold_units comes from an audit, which reads all stock and order records. No scrape waits for an audit: a scrape shows
// the latest result and starts the next audit in the background. Audits never overlap. Each has a time limit, and they run at most
// once per interval and at most a twentieth of the time. If the latest audit failed, the gauge is absent: unknown is not 0.
//
// Metrics of timers have the labels kind, which has few values, and role, which is base or canary:
//
//	shop_timers_firing_delay_seconds                   from due to the handler
//	shop_timers_due_lag_seconds                        how overdue the most overdue timer is
//	shop_timers_open, _dead{partition}                 stored timers: open; dead until redriven or cancelled
//	shop_timers_pending{partition}                     index entries that are not claimed
//	shop_timers_paused                                 1 while the kind is paused
//	shop_timers_leading                                1 on the instance that reconciles the kind
//	shop_timers_scheduled_total                        timers that were stored
//	shop_timers_claims_total{result}                   claims: with timers, or empty
//	shop_timers_claimed_total                          timers claimed from the index
//	shop_timers_wakeups_total{by}                      why a consumer polled the index: timer, poll, message, backlog
//	shop_timers_outcomes_total{outcome}                done, committed, retry, not_due, dead
//	shop_timers_handler_duration_seconds{result}       of a batch
//	shop_timers_nacked_total                           claims returned unhandled
//	shop_timers_repairs_total{reason}                  look_ahead, overdue, rebuild, reassign: 0 in a healthy system
//	shop_timers_index_entries_dropped_total            the reconciler adds them later
//	shop_timers_failures_total{during}                 background operations that failed
//	shop_timers_index_clock_offset_seconds             clock of the index minus clock of this instance
//
// The gauges come from counting rows, at most once in ten seconds. They are absent while the count fails.
// [Telemetry.TraceTimers] gives each batch of timers a span with links to the spans that scheduled them.
//
// # Logs
//
// [NewLogger] writes JSON, one object per line, with the trace_id and span_id
// of the context that a line is logged with.
package telemetry
