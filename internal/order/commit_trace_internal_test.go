package order

import (
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// The span of a transaction is in the trace of an order that is recorded, and has links to all that are, of its SKU and of other SKUs,
// also if a client has them in one trace.
func TestTransactionLinksItsOrders(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	bubble(t, byLeaders, func(r *rig) {
		r.queue.tracer = tracers.Tracer("test")
		first := r.do(r.Context(), "1", "conditional/a")
		c := r.commit("1")
		var want []trace.Link
		order := func(id, sku string, in byte, sampled bool) <-chan error {
			s := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{in}, SpanID: trace.SpanID{id[0]}, TraceFlags: trace.TraceFlags(0).WithSampled(sampled)})
			if sampled {
				want = append(want, trace.Link{SpanContext: s})
			}
			return r.do(trace.ContextWithSpanContext(r.Context(), s), id, sku)
		}
		done := []<-chan error{order("2", "b", 1, false), order("3", "b", 2, true), order("4", "b", 2, true), order("5", "conditional/c", 3, true), order("6", "conditional/c", 4, false)}
		c.answer <- nil
		r.ended(first, nil)
		c = r.commit("2 3 4 | 5 | 6")
		if !trace.SpanContextFromContext(c.ctx).IsSampled() {
			r.Error("the statements of the transaction are not recorded")
		}
		c.answer <- nil
		for _, d := range done {
			r.ended(d, nil)
		}
		got := spans.GetSpans()
		if len(got) != 1 {
			r.Fatalf("%d spans, want one", len(got))
		}
		if is := got[0]; is.SpanContext.TraceID() != want[0].SpanContext.TraceID() || is.Parent.SpanID() != want[0].SpanContext.SpanID() {
			r.Errorf("the span is a child of %v, want %v", is.Parent, want[0].SpanContext)
		}
		if !slices.EqualFunc(got[0].Links, want, func(is sdktrace.Link, l trace.Link) bool { return is.SpanContext.Equal(l.SpanContext) }) {
			r.Errorf("links to %v, want %v", got[0].Links, want)
		}
	})
}
