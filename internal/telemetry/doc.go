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
// All metrics are on /metrics of the listeners of --admin-listen and --metrics-listen. With an OTLP endpoint they are pushed as
// well. schema.yaml has their names, units and descriptions. The code that makes them and docs/reference/metrics.md are
// generated from it. No client can choose the value of a label: the strategy of a SKU is a label, the SKU is not.
//
// shop_oversold_units comes from an audit, which reads all stock and order records. No scrape waits for an audit: a scrape shows
// the latest result and starts the next audit in the background. Audits never overlap. Each has a time limit, and they run at most
// once per interval and at most a twentieth of the time. If the latest audit failed, the gauge is absent: unknown is not 0.
//
// Metrics of timers have the labels kind, which has few values, and role, which is base or canary.
// The gauges of stored timers come from counting rows, at most once in ten seconds. They are absent while the count fails.
// [Telemetry.TraceTimers] gives each batch of timers a span with links to the spans that scheduled them.
//
// # Logs
//
// [NewLogger] writes JSON, one object per line, with the trace_id and span_id
// of the context that a line is logged with. With an OTLP endpoint, [Telemetry.Logger] exports the same lines.
package telemetry
