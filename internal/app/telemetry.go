package app

import (
	"context"
	"io"
	"log/slog"

	"example.com/shop/internal/telemetry"
)

func (i *instance) openTelemetry(ctx context.Context, stderr io.Writer) (err error) {
	i.level = new(slog.LevelVar)
	i.level.Set(i.c.LogLevel)
	newLogger := telemetry.NewLogger
	if i.c.TextLogs {
		newLogger = telemetry.NewTextLogger
	}
	i.log = newLogger(stderr, i.level).With(slog.String("instance", i.c.Instance))
	i.tel, err = telemetry.Setup(ctx, telemetry.Config{Version: i.c.Version, Instance: i.c.Instance, Logger: i.log})
	if err != nil {
		return err
	}
	i.closers.push(i.tel.Shutdown)
	i.observer, err = telemetry.NewObserver(ctx, i.tel.MeterProvider)
	return err
}
