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
// All metrics are on /metrics, and with an OTLP endpoint they are pushed as
// well. Instruments have the name that Prometheus shows, so that one search
// finds both. No label has values that a client can choose: the strategy of a
// SKU is a label, the SKU is not.
//
//	shop_orders_total{outcome}      orders asked for, by how they ended
//	shop_order_retries_total{reason} attempts made again: fenced, lost, conflict
//	shop_fence_rejections_total     stale fences that the database refused
//	shop_oversold_units{strategy}   units promised beyond those that exist: must stay 0
//	shop_audit_failures_total       audits for shop_oversold_units that gave no answer
//
// shop_oversold_units comes from an audit of the books, which reads all of
// them. However often and by however many it is scraped, there is at most one
// audit per interval, one at a time and bounded in time. While the latest audit
// failed the gauge is absent: the number is then unknown, which is not 0.
//
// # Logs
//
// [NewLogger] writes JSON, one object per line, with the trace_id and span_id
// of the context that a line is logged with.
package telemetry
