// Package telemetry sets up traces, metrics and logs, and hands them out as
// values: nothing here is registered globally but the function that hears of
// failed exports, which OpenTelemetry keeps in a global.
//
// # Traces
//
// Every request has a trace, so that its log lines share a trace_id. With an
// OTLP endpoint the spans are sampled as OTEL_TRACES_SAMPLER says, all of them
// by default, and exported in batches over HTTP. Without one they carry ids
// and nothing else, and cost next to nothing.
//
// # Metrics
//
// All metrics are on /metrics of the admin listener, and with an OTLP endpoint they are pushed as
// well. Instruments have the name that Prometheus shows, so that one search
// finds both. No label has values that a client can choose: the strategy of a
// SKU is a label, the SKU is not.
//
//	shop_orders_total{outcome}      orders asked for, by how they ended
//	shop_order_retries_total{reason} attempts made again: fenced, lost, conflict
//	shop_fence_rejections_total     stale fences that the database refused
//	shop_oversold_units{strategy}   units promised beyond those that exist: must stay 0
//	shop_audit_age_seconds          how long ago the audit for shop_oversold_units was
//	shop_audit_failures_total       audits for shop_oversold_units that gave no answer
//	shop_permits, _leased, _in_use, _usable, _instances, _alone, _refused_total, _store_calls_total
//	                                see [WatchPermits]
//	shop_waiting                    orders that wait for units
//
// shop_oversold_units comes from an audit of the books, which reads all of
// them. No scrape waits for it: a scrape shows the latest audit, and starts the next one in the background. However
// often it is scraped, there is at most one audit per interval, one at a time, bounded in time, and audits take a twentieth of the
// time at most. While the latest audit failed the gauge is absent: the number is then unknown, which is not 0.
//
// Those of timers have the labels kind, of which there are few, and role, which is base or canary:
//
//	shop_timeout_lateness_seconds            from due to the handler
//	shop_timeout_due_lag_seconds             how overdue the most overdue timer is
//	shop_timeout_open, _dead{partition}      rows: to be fired; to be redriven or cancelled by somebody
//	shop_timeout_pending{partition}          what the index has
//	shop_timeout_paused                      1 while the kind is
//	shop_timeout_leading                     1 on the instance that reconciles the kind
//	shop_timeout_scheduled_total             rows written
//	shop_timeout_claims_total{result}        questions to the index, answered with timers or empty
//	shop_timeout_claimed_total               timers claimed from the index
//	shop_timeout_wakeups_total{by}           why the index was asked: timer, poll, message, backlog
//	shop_timeout_outcomes_total{outcome}     done, committed, retry, not_due, dead
//	shop_timeout_handler_duration_seconds{result}  of a batch
//	shop_timeout_returned_total              claims given back unhandled
//	shop_timeout_repairs_total{reason}       look_ahead, overdue, rebuild, reassign: 0 while all is well
//	shop_timeout_hints_dropped_total         repaired later
//	shop_timeout_failures_total{during}      operations in the background that failed
//	shop_timeout_index_clock_offset_seconds  of the index against this instance
//
// The gauges come from counting rows, at most once in ten seconds, and are absent while that fails.
// [Telemetry.TraceTimers] gives each batch of timers a span that links to where they were scheduled.
//
// # Logs
//
// [NewLogger] writes JSON, one object per line, with the trace_id and span_id
// of the context that a line is logged with.
package telemetry
