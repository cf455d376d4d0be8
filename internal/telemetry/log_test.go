package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/telemetry"
)

// lines decodes what a logger wrote.
func lines(tb testing.TB, b *bytes.Buffer) []map[string]any {
	tb.Helper()
	var all []map[string]any
	for d := json.NewDecoder(bytes.NewReader(b.Bytes())); d.More(); {
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			tb.Fatalf("%v in %s", err, b)
		}
		all = append(all, m)
	}
	return all
}

func TestLogHasTraceIDs(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	traceID, spanID := span.SpanContext().TraceID().String(), span.SpanContext().SpanID().String()

	for _, c := range []struct {
		name string
		with func(*slog.Logger) *slog.Logger
		want map[string]any
	}{
		{"plain", func(l *slog.Logger) *slog.Logger { return l }, map[string]any{"n": 1.0}},
		{
			"attributes", func(l *slog.Logger) *slog.Logger { return l.With("a", 1) },
			map[string]any{"a": 1.0, "n": 1.0},
		},
		{
			"below groups", func(l *slog.Logger) *slog.Logger { return l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h") },
			map[string]any{"a": 1.0, "g": map[string]any{"b": 2.0, "h": map[string]any{"n": 1.0}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			c.with(telemetry.NewLogger(&out, slog.LevelInfo)).InfoContext(ctx, "order placed", "n", 1)
			got := lines(t, &out)[0]
			delete(got, "time")
			c.want["level"], c.want["msg"] = "INFO", "order placed"
			c.want["trace_id"], c.want["span_id"] = traceID, spanID
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("line (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogWithoutSpanHasNoIDs(t *testing.T) {
	var out bytes.Buffer
	telemetry.NewLogger(&out, slog.LevelInfo).InfoContext(t.Context(), "started")
	if _, ok := lines(t, &out)[0]["trace_id"]; ok {
		t.Errorf("a line outside of any trace has a trace_id: %s", &out)
	}
}

func TestTextLogIsReadable(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	var out bytes.Buffer
	telemetry.NewTextLogger(&out, slog.LevelInfo).With("instance", "a").InfoContext(ctx, "order placed", "n", 1)
	want := "level=INFO msg=\"order placed\" instance=a n=1 trace_id=" + span.SpanContext().TraceID().String() + " span_id="
	if !strings.Contains(out.String(), want) || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("wrote %s, want %s", &out, want)
	}
}

func TestLogLevel(t *testing.T) {
	var out bytes.Buffer
	l := telemetry.NewLogger(&out, slog.LevelWarn)
	l.InfoContext(t.Context(), "hidden")
	l.WithGroup("g").InfoContext(t.Context(), "hidden")
	l.WarnContext(t.Context(), "seen")
	if got := lines(t, &out); len(got) != 1 || got[0]["msg"] != "seen" {
		t.Errorf("wrote %s", &out)
	}
}

// inSpan gives each record the context of a span.
type inSpan struct {
	slog.Handler
	span trace.Span
}

func (h inSpan) Handle(ctx context.Context, r slog.Record) error {
	return h.Handler.Handle(trace.ContextWithSpan(ctx, h.span), r)
}

func (h inSpan) WithAttrs(attrs []slog.Attr) slog.Handler {
	return inSpan{h.Handler.WithAttrs(attrs), h.span}
}

func (h inSpan) WithGroup(name string) slog.Handler {
	return inSpan{h.Handler.WithGroup(name), h.span}
}

// TestLogHandler holds the handler to the contract of slog.Handler, in a span
// and outside, because the two take different paths.
func TestLogHandler(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	defer span.End()
	for name, s := range map[string]trace.Span{"inside": span, "outside": trace.SpanFromContext(t.Context())} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			slogtest.Run(t, func(*testing.T) slog.Handler {
				out.Reset()
				return inSpan{telemetry.NewLogger(&out, slog.LevelInfo).Handler(), s}
			}, func(t *testing.T) map[string]any {
				t.Helper()
				return lines(t, &out)[0]
			})
		})
	}
}
