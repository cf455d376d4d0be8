package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/timeout"
)

// linksMax is how many links of a span OpenTelemetry keeps; further links evict the first.
const linksMax = 128

// Traceparent returns the span context of ctx in the W3C format, which a timer stores.
func (t *Telemetry) Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// TraceTimers returns a handler that starts a span for each batch. The span is the root of a
// new trace, with links to at most 128 spans that scheduled the timers. Links instead of a parent: a
// batch has many timers, and their traces may have ended long ago.
func (t *Telemetry) TraceTimers(kind string, h timeout.Handler) timeout.Handler {
	tracer := t.TracerProvider.Tracer(scope)
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		ctx, span := tracer.Start(ctx, "timers "+kind, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithLinks(links(ctx, batch)...), trace.WithAttributes(attribute.Int("messaging.batch.message_count", len(batch))))
		defer span.End()
		outcomes, err := h(ctx, batch)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, "handler failed")
		}
		return outcomes, err
	}
}

// links returns a link to each span that scheduled a timer of the batch.
func links(ctx context.Context, batch []timeout.Fired) []trace.Link {
	var all []trace.Link
	seen := make(map[string]bool)
	for _, f := range batch {
		if f.Trace == "" || seen[f.Trace] || len(all) == linksMax {
			continue
		}
		seen[f.Trace] = true
		origin := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": f.Trace})
		if s := trace.SpanContextFromContext(origin); s.IsRemote() {
			all = append(all, trace.Link{SpanContext: s})
		}
	}
	return all
}
