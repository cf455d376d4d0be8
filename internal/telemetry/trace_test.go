package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/order"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

// shop returns services on a new SQLite database, all of which report to t.
// The strategy "redis" takes its leases from memory.
func shop(tb testing.TB, t *telemetry.Telemetry) (*order.Service, *stock.Service) {
	tb.Helper()
	store, err := sqlstore.Open(tb.Context(), sqlstore.Config{
		URL:    "sqlite:" + filepath.Join(tb.TempDir(), "shop.db"),
		Tracer: t.TracerProvider,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := store.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	locker, err := otellock.New(memlock.New(memlock.Config{}), otellock.Config{
		Backend: "memory", TracerProvider: t.TracerProvider, MeterProvider: t.MeterProvider,
	})
	if err != nil {
		tb.Fatal(err)
	}
	observer, err := telemetry.NewObserver(tb.Context(), t.MeterProvider)
	if err != nil {
		tb.Fatal(err)
	}
	strategies := stock.NewStrategies(stock.Lockers{Redis: locker})
	return order.NewService(store, strategies, order.Config{Tracer: t.TracerProvider, Observer: observer}),
		stock.NewService(store, strategies, nil)
}

// setup is telemetry.Setup without the environment's endpoints, and with a
// shutdown at the end of the test.
func setup(tb testing.TB, c telemetry.Config) *telemetry.Telemetry {
	tb.Helper()
	for _, signal := range []string{"", "TRACES_", "METRICS_"} {
		tb.Setenv("OTEL_EXPORTER_OTLP_"+signal+"ENDPOINT", "")
	}
	t, err := telemetry.Setup(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 5*time.Second)
		defer cancel()
		if err := t.Shutdown(ctx); err != nil {
			tb.Error(err)
		}
	})
	return t
}

// keep is an exporter whose spans outlive its shutdown.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

var _ sdktrace.SpanExporter = keep{}

func TestOneOrderIsOneTrace(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	orders, levels := shop(t, tel)
	if _, _, err := levels.Create(t.Context(), stock.Level{SKU: "mug", Strategy: "redis", OnHand: 10}); err != nil {
		t.Fatal(err)
	}
	spans.Reset()

	const customer = "customer-4711"
	if _, err := orders.Place(t.Context(), order.Purchase{Customer: customer, Items: []order.Item{{SKU: "mug", Quantity: 3}}}); err != nil {
		t.Fatal(err)
	}

	if err := orders.Wait(t.Context()); err != nil { // for the release of the lock, which the customer does not wait for
		t.Fatal(err)
	}
	got := spans.GetSpans()
	names := make(map[trace.SpanID]string)
	for _, s := range got {
		names[s.SpanContext.SpanID()] = s.Name
		if s.SpanContext.TraceID() != got[0].SpanContext.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		if s.EndTime.IsZero() {
			t.Errorf("%s has not ended", s.Name)
		}
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), customer) {
				t.Errorf("%s shows a customer in %s: %s", s.Name, a.Key, a.Value.String())
			}
		}
	}
	// Each span as "parent > name", once.
	var tree []string
	for _, s := range got {
		tree = append(tree, names[s.Parent.SpanID()]+" > "+s.Name)
	}
	slices.Sort(tree)
	want := []string{
		" > order.place",
		"lock.hold > stock.reserve",
		"order.place > SELECT skus", // by which strategy the SKU is sold
		"order.place > lock.acquire",
		"order.place > lock.hold",
		"order.place > lock.release",
		"stock.reserve > BEGIN",
		"stock.reserve > COMMIT",
		"stock.reserve > INSERT ledger",
		"stock.reserve > INSERT order_lines",
		"stock.reserve > INSERT orders",
		"stock.reserve > SELECT skus", // with the clock
		"stock.reserve > UPDATE skus",
	}
	if diff := cmp.Diff(want, slices.Compact(tree)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestSpansOfAnOrderSayWhatItWas(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	orders, levels := shop(t, tel)
	if _, _, err := levels.Create(t.Context(), stock.Level{SKU: "mug", Strategy: "redis", OnHand: 1}); err != nil {
		t.Fatal(err)
	}
	mugs := func(n int64) order.Purchase {
		return order.Purchase{Customer: "c", Items: []order.Item{{SKU: "mug", Quantity: n}}}
	}
	placed, err := orders.Place(t.Context(), mugs(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Place(t.Context(), mugs(1)); !errors.As(err, new(*stock.ShortageError)) {
		t.Fatal(err)
	}
	if _, err := orders.Place(t.Context(), order.Purchase{Customer: "c", Items: []order.Item{{SKU: "unknown", Quantity: 1}}}); !errors.Is(err, order.ErrUnknownSKU) {
		t.Fatal(err)
	}
	var says []string
	for _, s := range spans.GetSpans() {
		for _, a := range s.Attributes {
			if s.Name == "order.place" || s.Name == "stock.reserve" {
				says = append(says, fmt.Sprint(a.Key, "=", a.Value.String()))
			}
		}
	}
	for _, want := range []string{
		"error.type=invalid", "order.batch.size=1", "order.id=" + placed.ID, "order.outcome=accepted", "order.outcome=out_of_stock", "order.skus=1", "order.strategy=redis",
		"stock.orders=1", "stock.skus=1", "stock.strategy=redis",
	} {
		if !slices.Contains(says, want) {
			t.Errorf("no %s in %q", want, says)
		}
	}
}

func TestStatementsShowNoValues(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	orders, levels := shop(t, tel)
	ctx, request := tel.TracerProvider.Tracer("test").Start(t.Context(), "request")
	defer request.End()
	if _, _, err := levels.Create(ctx, stock.Level{SKU: "secret-sku", Strategy: "conditional", OnHand: 10}); err != nil {
		t.Fatal(err)
	}
	o, err := orders.Place(ctx, order.Purchase{Customer: "secret-customer", Items: []order.Item{{SKU: "secret-sku", Quantity: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orders.Pay(ctx, order.Target{ID: o.ID}, "secret-payment"); err != nil {
		t.Fatal(err)
	}
	statements := 0
	for _, s := range spans.GetSpans() {
		for _, a := range s.Attributes {
			if a.Key != "db.query.text" {
				continue
			}
			statements++
			if text := a.Value.AsString(); strings.Contains(text, "secret") || strings.Contains(text, o.ID) {
				t.Errorf("statement with a value: %s", text)
			}
		}
	}
	if statements < 10 {
		t.Errorf("%d statements have a text", statements)
	}
}

func TestWithoutEndpointSpansHaveIDsOnly(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	if !span.SpanContext().IsValid() {
		t.Error("the span has no ids")
	}
	if span.IsRecording() || span.SpanContext().IsSampled() {
		t.Error("the span is recorded for nobody")
	}
}

// A transaction has up to 256 orders, and a link to each.
func TestSpansKeepManyLinks(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tracer := setup(t, telemetry.Config{Spans: spans}).TracerProvider.Tracer("test")
	var links []trace.Link
	for i := range 256 {
		links = append(links, trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, byte(i)}, SpanID: trace.SpanID{1}})})
	}
	_, span := tracer.Start(t.Context(), "transaction", trace.WithLinks(links...))
	span.End()
	if n := len(spans.GetSpans()[0].Links); n != len(links) {
		t.Errorf("%d links are left of %d", n, len(links))
	}
}
