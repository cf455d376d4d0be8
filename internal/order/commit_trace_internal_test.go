package order

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// The span of a transaction is in the trace of an order that is recorded, and has links to all others, of its SKU and of other SKUs.
func TestTransactionLinksItsOrders(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	bubble(t, byLeaders, func(r *rig) {
		r.queue.tracer = tracers.Tracer("test")
		first := r.do(r.Context(), "1", "conditional/a")
		c := r.commit("1")
		want := make(map[trace.TraceID]bool)
		order := func(id, sku string, sampled bool) <-chan error {
			s := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{id[0]}, SpanID: trace.SpanID{1}, TraceFlags: trace.TraceFlags(0).WithSampled(sampled)})
			if sampled {
				want[s.TraceID()] = true
			}
			return r.do(trace.ContextWithSpanContext(r.Context(), s), id, sku)
		}
		done := []<-chan error{order("2", "b", false), order("3", "b", true), order("4", "b", true), order("5", "conditional/c", true), order("6", "conditional/c", false)}
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
		found := map[trace.TraceID]bool{got[0].SpanContext.TraceID(): true}
		for _, l := range got[0].Links {
			found[l.SpanContext.TraceID()] = true
		}
		if len(found) != len(want) || len(got[0].Links) != len(want)-1 {
			r.Errorf("traces %v, want %v", found, want)
		}
		for id := range want {
			if !found[id] {
				r.Errorf("no link to %v", id)
			}
		}
	})
}
