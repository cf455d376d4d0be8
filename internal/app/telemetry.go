package app

import (
	"context"
	"log/slog"

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
