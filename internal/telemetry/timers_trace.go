package telemetry

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/timeout"
)

// Traceparent returns the span context of ctx in the W3C format, which a timer stores.
func (t *Telemetry) Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// TraceTimers returns a handler that starts a span for each batch. The span is the root of a
// new trace, with links to the spans that scheduled the timers, each with the id of its timer. Links instead of a parent: a
// batch has many timers, and their traces may have ended long ago. If the batch or a timer of it failed, the span has the first error.
func (t *Telemetry) TraceTimers(kind string, h timeout.Handler) timeout.Handler {
	tracer := t.TracerProvider.Tracer(scope)
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		ctx, span := tracer.Start(ctx, "timers "+kind, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithLinks(links(ctx, batch)...), trace.WithAttributes(attribute.Int("messaging.batch.message_count", len(batch))))
		defer span.End()
		outcomes, err := h(ctx, batch)
		failed := err
		for _, o := range outcomes {
			failed = cmp.Or(failed, o.Err())
		}
		if failed != nil {
			span.SetAttributes(semconv.ErrorType(failed))
			span.SetStatus(codes.Error, failed.Error())
		}
		return outcomes, err
	}
}

// links returns, for each timer of the batch, a link to the span that scheduled it. A span may have scheduled several.
func links(ctx context.Context, batch []timeout.Fired) []trace.Link {
	var all []trace.Link
	for _, f := range batch {
		origin := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": f.Trace})
		if s := trace.SpanContextFromContext(origin); s.IsRemote() {
			all = append(all, trace.Link{SpanContext: s, Attributes: []attribute.KeyValue{semconv.MessagingMessageID(f.ID)}})
		}
	}
	return all
}
