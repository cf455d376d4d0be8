package telemetry

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"go.opentelemetry.io/otel/trace"
)

// NewLogger returns a logger that writes JSON to w, one object per line, from
// level on. Lines logged with the context of a span carry its trace_id and
// span_id.
func NewLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return withTraces(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// NewTextLogger returns the same for people: a line of text instead of an object, with the time of day.
func NewTextLogger(w io.Writer, level slog.Leveler) *slog.Logger {
	return withTraces(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 && a.Value.Kind() == slog.KindTime {
			a.Value = slog.StringValue(a.Value.Time().Format("15:04:05.000"))
		}
		return a
	}}))
}

// fromLevel is a handler of records from a level on.
type fromLevel struct {
	slog.Handler
	level slog.Leveler
}

// Enabled implements [slog.Handler].
func (h fromLevel) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements [slog.Handler].
func (h fromLevel) WithAttrs(attrs []slog.Attr) slog.Handler {
	return fromLevel{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements [slog.Handler].
func (h fromLevel) WithGroup(name string) slog.Handler {
	return fromLevel{h.Handler.WithGroup(name), h.level}
}

func withTraces(h slog.Handler) *slog.Logger { return slog.New(&traced{Handler: h, outer: h}) }

// traced adds the ids of the span in the context to each record.
type traced struct {
	slog.Handler // with every attribute and group of the logger

	// The ids belong at the top level, whatever group the logger has open. So with a group, outer gets them, the
	// handler before the first group. Then the rest is applied again on top.
	outer slog.Handler
	rest  []func(slog.Handler) slog.Handler
}

// Handle implements [slog.Handler].
func (h *traced) Handle(ctx context.Context, r slog.Record) error {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	ids := []slog.Attr{
		slog.String("trace_id", sc.TraceID().String()),
		slog.String("span_id", sc.SpanID().String()),
	}
	if len(h.rest) == 0 {
		r = r.Clone() // another handler may hold the same record
		r.AddAttrs(ids...)
		return h.Handler.Handle(ctx, r)
	}
	out := h.outer.WithAttrs(ids)
	for _, step := range h.rest {
		out = step(out)
	}
	return out.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *traced) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) }
	if len(h.rest) > 0 {
		return h.then(with)
	}
	inner := with(h.Handler)
	return &traced{Handler: inner, outer: inner}
}

// WithGroup implements [slog.Handler].
func (h *traced) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.then(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

// then returns h with one more step behind the first group.
func (h *traced) then(step func(slog.Handler) slog.Handler) *traced {
	return &traced{Handler: step(h.Handler), outer: h.outer, rest: append(slices.Clip(h.rest), step)}
}
