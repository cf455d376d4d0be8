package app

import (
	"context"
	"log/slog"
	"time"

	"example.com/shop/internal/app/webhook"
	"example.com/shop/internal/platform/backoff"
	"example.com/shop/internal/sqlstore"
	"example.com/shop/internal/telemetry"
	"example.com/shop/internal/timeout"
)

const (
	// deliverEvery is the shortest pause between two passes of the leader that look for SKUs with entries to be delivered. A pass takes at
	// most a tenth of the time.
	deliverEvery = time.Second

	// deliverPass is the longest that a pass may take.
	deliverPass = time.Minute
)

// openWebhook registers the handler of deliveries, and returns what schedules them while the instance leads, until its context ends. Without a
// URL it does neither.
func openWebhook(c Config, store *sqlstore.Store, timers *timeout.Queue, lead *leadership, tel *telemetry.Telemetry, closers *closers, log *slog.Logger) (func(context.Context) error, error) {
	if c.Webhook == "" {
		return func(context.Context) error { return nil }, nil
	}
	sender, err := webhook.New(store, c.Webhook, c.WebhookSecret)
	if err != nil {
		return nil, err
	}
	closers.pushClient("webhook", func() error { sender.Close(); return nil })
	schedule := func(ctx context.Context, hold func(context.Context, timeout.Tx) error) (int64, error) {
		return store.ScheduleDeliveries(ctx, hold, webhook.Timer)
	}
	return func(ctx context.Context) error {
		for pause := deliverEvery; backoff.Sleep(ctx, pause); {
			began := time.Now()
			if _, _, err := onceAsLeader(ctx, lead, deliverPass, schedule); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "scheduling deliveries failed; retrying later", slog.String("error", err.Error()))
			}
			pause = max(deliverEvery, 9*time.Since(began))
		}
		return nil
	}, timers.Handle(webhook.Timer, tel.TraceTimers(webhook.Timer, sender.Handle), webhook.Options())
}
