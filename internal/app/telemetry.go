package app

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/codes"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/telemetry"
)

func (i *instance) openLog() {
	i.level = new(slog.LevelVar)
	i.level.Set(i.c.LogLevel)
	newLogger := telemetry.NewLogger
	if i.c.TextLogs {
		newLogger = telemetry.NewTextLogger
	}
	i.log = newLogger(i.stderr, i.level).With(slog.String("instance", i.c.Instance))
}

func (i *instance) openTelemetry(ctx context.Context) (err error) {
	i.tel, err = telemetry.Setup(ctx, telemetry.Config{Version: i.c.Version, Instance: i.c.Instance, Logger: i.log})
	if err != nil {
		return err
	}
	i.closers.pushService("telemetry", i.tel.Shutdown)
	i.log = i.tel.Logger(i.log, i.level)
	i.observer, err = telemetry.NewObserver(ctx, i.tel.MeterProvider)
	return err
}

// trace returns what this instance has recorded of an order.
func (i *instance) trace(order string) httpapi.OrderTrace {
	spans, since := i.tel.SpansOf(order)
	since = since.UTC()
	all := httpapi.OrderTrace{Since: &since, Spans: make([]httpapi.Span, len(spans))}
	for n, s := range spans {
		attributes := make(map[string]string)
		for _, a := range s.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		all.Spans[n] = httpapi.Span{
			ID: s.SpanContext().SpanID().String(), Name: s.Name(), Instance: i.c.Instance, StartUs: s.StartTime().UnixMicro(),
			DurationUs: s.EndTime().Sub(s.StartTime()).Microseconds(), Failed: s.Status().Code == codes.Error, Attributes: attributes,
		}
		if s.Within.IsValid() {
			all.Spans[n].Within = s.Within.String()
		}
	}
	return all
}
