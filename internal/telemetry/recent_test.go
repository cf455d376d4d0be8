package telemetry_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
)

// tree returns the spans of an order, each with its depth.
func tree(t *testing.T, tel *telemetry.Telemetry, id string) (all []string) {
	t.Helper()
	spans, since := tel.SpansOf(id)
	if since.IsZero() {
		t.Error("spans are kept since no time")
	}
	depth := make(map[trace.SpanID]int)
	for _, s := range spans { // the outer ones begin first
		if s.Within.IsValid() {
			depth[s.SpanContext().SpanID()] = depth[s.Within] + 1
		}
		all = append(all, strings.Repeat("  ", depth[s.SpanContext().SpanID()])+s.Name())
	}
	return all
}

// The spans of an order are those of its requests, of the transaction that it shared, of the lease for it, and of the batch of timers that ended it.
// Those of other orders are not.
func TestSpansOfAnOrder(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "memory")
	tel := setup(t, telemetry.Config{})
	tracer := tel.TracerProvider.Tracer("test")
	start := func(ctx context.Context, name string, more ...trace.SpanStartOption) (context.Context, func()) {
		ctx, span := tracer.Start(ctx, name, more...)
		return ctx, func() { span.End() }
	}
	place := func(id string) (context.Context, func()) {
		ctx, end := start(t.Context(), "POST /api/v1/orders")
		ctx, placed := start(ctx, "order.place", trace.WithAttributes(attribute.String("order.id", id)))
		return ctx, func() { placed(); end() }
	}
	first, firstEnds := place("1")
	second, secondEnds := place("2")
	lease, released := start(first, "lock.hold")
	shared, committed := start(lease, "stock.reserve", trace.WithLinks(trace.LinkFromContext(first), trace.LinkFromContext(second)))
	for _, name := range []string{"BEGIN", "COMMIT"} {
		_, end := start(shared, name)
		end()
	}
	committed()
	secondEnds()
	firstEnds()
	_, other := start(lease, "stock.reserve", trace.WithLinks(trace.LinkFromContext(first))) // of the same lease
	other()
	released()
	_, paid := start(t.Context(), "POST /api/v1/orders/:id/pay", trace.WithAttributes(attribute.String("http.request.method", "POST"), attribute.String("url.path", "/api/v1/orders/1/pay")))
	paid()
	_, read := start(t.Context(), "GET /api/v1/orders/:id", trace.WithAttributes(attribute.String("http.request.method", "GET"), attribute.String("url.path", "/api/v1/orders/1")))
	read()
	expire := tel.TraceTimers("order.expire", func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		_, end := start(ctx, "UPDATE orders")
		end()
		return make([]timeout.Outcome, len(batch)), nil
	})
	if _, err := expire(t.Context(), []timeout.Fired{{ID: "5", Trace: tel.Traceparent(shared)}, {ID: "2", Trace: tel.Traceparent(shared)}, {ID: "3"}}); err != nil {
		t.Fatal(err)
	}
	queued := tel.TraceTimers("order.place", func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		for _, f := range batch {
			_, end := start(ctx, "order.place_queued", trace.WithAttributes(attribute.String("order.id", f.ID)))
			end()
		}
		return make([]timeout.Outcome, len(batch)), nil
	})
	if _, err := queued(t.Context(), []timeout.Fired{{ID: "6"}, {ID: "7"}}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{
		"1": {
			"POST /api/v1/orders", "  order.place", "    lock.hold", "      stock.reserve", "        BEGIN", "        COMMIT", "      stock.reserve",
			"POST /api/v1/orders/:id/pay",
		},
		"2": {"POST /api/v1/orders", "  order.place", "    lock.hold", "      stock.reserve", "        BEGIN", "        COMMIT", "timers order.expire", "  UPDATE orders"},
		"4": nil,
		"6": {"timers order.place", "  order.place_queued"},
		"5": {"timers order.expire", "  UPDATE orders"}, // it was not sampled
	} {
		if diff := cmp.Diff(want, tree(t, tel, id)); diff != "" {
			t.Errorf("order %s (-want +got):\n%s", id, diff)
		}
	}
}

// A client may send the traceresponse of an order as the traceparent of others, as it may have several in a trace of its own. Each has
// its own spans and its own transaction, also under the lease of another one.
func TestOrdersOfOneTraceAreApart(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "memory")
	tel := setup(t, telemetry.Config{})
	tracer := tel.TracerProvider.Tracer("test")
	sent, ends := propagation.MapCarrier{}, []func(){}
	place := func(id string) context.Context {
		ctx, request := tracer.Start(tel.Propagator.Extract(t.Context(), sent), "POST /api/v1/orders")
		if len(sent) == 0 {
			sent["traceparent"] = tel.Traceparent(ctx)
		}
		ctx, placed := tracer.Start(ctx, "order.place", trace.WithAttributes(attribute.String("order.id", id)))
		ends = append(ends, func() { placed.End(); request.End() })
		return ctx
	}
	orders := map[string]context.Context{"1": place("1"), "2": place("2"), "3": place("3")}
	lease, hold := tracer.Start(orders["1"], "lock.hold")
	for _, of := range []string{"1", "2 3"} {
		var links []trace.Link
		for id := range strings.FieldsSeq(of) {
			links = append(links, trace.LinkFromContext(orders[id]))
		}
		ctx, transaction := tracer.Start(lease, "stock.reserve", trace.WithLinks(links...))
		_, statement := tracer.Start(ctx, "UPDATE "+of)
		statement.End()
		transaction.End()
	}
	hold.End()
	for _, end := range ends {
		end()
	}
	for id, statement := range map[string]string{"1": "UPDATE 1", "2": "UPDATE 2 3", "3": "UPDATE 2 3"} {
		want := []string{"POST /api/v1/orders", "  order.place", "    lock.hold", "      stock.reserve", "        " + statement}
		if diff := cmp.Diff(want, tree(t, tel, id)); diff != "" {
			t.Errorf("order %s (-want +got):\n%s", id, diff)
		}
	}
}

// Whether the spans of an order are kept is the decision of the sampler.
func TestOrderThatIsNotSampledHasNoSpans(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "memory")
	for sampler, want := range map[string]string{"always_on": "order.place", "always_off": ""} {
		t.Setenv("OTEL_TRACES_SAMPLER", sampler)
		tel := setup(t, telemetry.Config{})
		orders, levels := shop(t, tel)
		if _, _, err := levels.Create(t.Context(), stock.Level{SKU: "mug", Strategy: "redis", OnHand: 10}); err != nil {
			t.Fatal(err)
		}
		o, err := orders.Place(t.Context(), order.Purchase{Customer: "c", Items: []order.Item{{SKU: "mug", Quantity: 3}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(tree(t, tel, o.ID), "\n"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: spans %q", sampler, got)
		}
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	if setup(t, telemetry.Config{}).SpansOf != nil {
		t.Error("spans are kept although none are recorded")
	}
}
