package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/timeout"
)

// linksMax is how many links OpenTelemetry keeps of a span; more push out the first.
const linksMax = 128

// Traceparent returns where ctx is in its trace, in the form that a timer keeps.
func (t *Telemetry) Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// TraceTimers returns a handler that has a span for each batch. The span begins a
// trace of its own and links to those in which the timers were scheduled, at most 128: a
// batch has many, and each may have ended long ago.
func (t *Telemetry) TraceTimers(kind string, h timeout.Handler) timeout.Handler {
	tracer := t.TracerProvider.Tracer(scope)
	return func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		ctx, span := tracer.Start(ctx, "timers "+kind, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithLinks(links(ctx, batch)...), trace.WithAttributes(attribute.Int("messaging.batch.message_count", len(batch))))
		defer span.End()
		outcomes, err := h(ctx, batch)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, "the batch was not handled")
		}
		return outcomes, err
	}
}

// links returns a link to each span in which a timer was scheduled.
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
