package telemetry_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
	"example.com/shop/internal/timeout/memindex"
)

// The whole way of timers through a queue, in metrics, and in a span that links to those
// who scheduled them.
func TestTimersOfAQueue(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "shop.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	rows, err := store.Timers()
	if err := errors.Join(err, store.Migrate(t.Context())); err != nil {
		t.Fatal(err)
	}
	q, err := timeout.New(rows, memindex.New(memindex.Config{}), timeout.Config{
		Trace: tel.Traceparent, Observer: newTimers(t, tel, telemetry.TimersConfig{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := telemetry.WatchTimers(tel.MeterProvider, q.Stats, telemetry.WatchTimersConfig{Interval: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	inHandler := make(chan trace.SpanContext, 10)
	err = q.Handle("k", tel.TraceTimers("k", func(ctx context.Context, batch []timeout.Fired) ([]timeout.Outcome, error) {
		outcomes := make([]timeout.Outcome, len(batch))
		for i, f := range batch {
			if outcomes[i] = timeout.Done(); f.ID == "poison" {
				outcomes[i] = timeout.Retry(0, errors.New("poison"))
			}
		}
		inHandler <- trace.SpanContextFromContext(ctx)
		return outcomes, nil
	}), timeout.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "order")
	if _, err := q.Schedule(ctx, nil, timeout.Timer{Kind: "k", ID: "a"}, timeout.Timer{Kind: "k", ID: "poison"}); err == nil {
		t.Fatal("the zero time is a due time")
	}
	push, err := q.Schedule(ctx, nil, timeout.Timer{Kind: "k", ID: "a", Due: time.Now()}, timeout.Timer{Kind: "k", ID: "poison", Due: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	push()
	span.End()
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(running) }()
	consumer := <-inHandler
	for end := time.Now().Add(time.Minute); scrape(t, tel)[`shop_timers_dead{kind="k",partition="base",role="base"}`] != "1"; {
		if time.Now().After(end) {
			t.Fatal("no dead timer within a minute")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	got := scrape(t, tel)
	expect(t, got, map[string]string{
		`shop_timers_firing_delay_seconds_count{kind="k",role="base"}`:            "2",
		`shop_timers_firing_delay_seconds_bucket{kind="k",role="base",le="3600"}`: "2",
		`shop_timers_scheduled_total{kind="k",role="base"}`:                       "2",
		`shop_timers_outcomes_total{kind="k",outcome="done",role="base"}`:         "1",
		`shop_timers_outcomes_total{kind="k",outcome="dead",role="base"}`:         "1",
		`shop_timers_open{kind="k",partition="base",role="base"}`:                 "0",
	})
	checkLink(t, spans.GetSpans(), consumer, span.SpanContext())
}

func checkLink(t *testing.T, spans tracetest.SpanStubs, consumer, origin trace.SpanContext) {
	t.Helper()
	for _, s := range spans {
		if s.SpanContext.SpanID() != consumer.SpanID() {
			continue
		}
		if s.Name != "timers k" || s.SpanKind != trace.SpanKindConsumer || s.Parent.IsValid() || s.SpanContext.TraceID() == origin.TraceID() {
			t.Errorf("%s is a %v in trace %v with the parent %v", s.Name, s.SpanKind, s.SpanContext.TraceID(), s.Parent.SpanID())
		}
		if len(s.Links) != 2 || slices.ContainsFunc(s.Links, func(l sdktrace.Link) bool {
			return l.SpanContext.TraceID() != origin.TraceID() || l.SpanContext.SpanID() != origin.SpanID()
		}) {
			t.Errorf("links: %v, want two to %v", s.Links, origin)
		}
		return
	}
	t.Error("the handler ran in no span")
}

// A batch has a link for each of its timers, with the id of the timer, and none that is malformed.
func TestBatchSpanLinksToItsTimers(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	batch := []timeout.Fired{{}, {Trace: "nonsense"}, {Trace: "00-00000000000000000000000000000000-0000000000000000-01"}}
	for i := range 200 { // of one transaction
		batch = append(batch, timeout.Fired{ID: strconv.Itoa(i), Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	}
	want := errors.New("the whole batch failed")
	h := tel.TraceTimers("k", func(context.Context, []timeout.Fired) ([]timeout.Outcome, error) { return nil, want })
	if _, err := h(t.Context(), batch); !errors.Is(err, want) {
		t.Error(err)
	}
	got := spans.GetSpans()
	if len(got) != 1 || len(got[0].Links) != 200 || got[0].DroppedLinks != 0 {
		t.Fatalf("%d spans: %+v", len(got), got)
	}
	for i, l := range got[0].Links {
		if id := attribute.NewSet(l.Attributes...); id != attribute.NewSet(attribute.String("messaging.message.id", strconv.Itoa(i))) {
			t.Errorf("link %d has the attributes %v", i, l.Attributes)
		}
	}
}

// A batch that failed, or of which a timer failed, has the error. A timer that came too early, or is locked, is no failure.
func TestBatchSpanHasItsError(t *testing.T) {
	cause := errors.New("the receiver responded with 500")
	for name, c := range map[string]struct {
		outcomes []timeout.Outcome
		err      error
		failed   bool
	}{
		"batch": {nil, cause, true},
		"timer": {[]timeout.Outcome{timeout.Done(), timeout.Retry(0, cause)}, nil, true},
		"none":  {[]timeout.Outcome{timeout.Done(), timeout.Committed(), timeout.NotDue(time.Now()), timeout.Again(0)}, nil, false},
	} {
		spans := keep{tracetest.NewInMemoryExporter()}
		h := setup(t, telemetry.Config{Spans: spans}).TraceTimers("k", func(context.Context, []timeout.Fired) ([]timeout.Outcome, error) { return c.outcomes, c.err })
		if out, err := h(t.Context(), make([]timeout.Fired, len(c.outcomes))); !errors.Is(err, c.err) || len(out) != len(c.outcomes) {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		is := spans.GetSpans()[0]
		attrs := attribute.NewSet(is.Attributes...)
		kind, _ := attrs.Value("error.type")
		want, text := sdktrace.Status{}, ""
		if c.failed {
			want, text = sdktrace.Status{Code: codes.Error, Description: cause.Error()}, "*errors.errorString"
		}
		if is.Status != want || kind.AsString() != text {
			t.Errorf("%s: status %v, error.type %q", name, is.Status, kind.AsString())
		}
	}
}
