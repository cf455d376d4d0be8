package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/broadcast"
	"example.com/shop/internal/events"
)

// WatchEvents makes metrics show what the bus and the feed of this instance say about events.
func WatchEvents(mp metric.MeterProvider, bus func() broadcast.Stats, feed func() events.Stats) error {
	m := mp.Meter(scope)
	var errs []error
	var all []metric.Observable
	gauge := func(name, what string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge("shop_events"+name, metric.WithDescription(what))
		errs, all = append(errs, err), append(all, g)
		return g
	}
	counter := func(name, what string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter("shop_events"+name+"_total", metric.WithDescription(what))
		errs, all = append(errs, err), append(all, c)
		return c
	}
	live := gauge("_live", "1 while messages of other instances arrive, or else 0.")
	listeners := gauge("_listeners", "Clients that follow the events of this instance.")
	published := counter("_published", "Messages that this instance has numbered.")
	dropped := counter("_dropped", "Of them those that were not sent, or not for certain.")
	heard := counter("_heard", "Events of all instances that arrived.")
	missed := counter("_missed", "How often events may have been missed.")
	resets := counter("_resets", "How often a client was told to start anew.")
	refused := counter("_refused", "Clients for whom there was no room.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: events: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		b, f := bus(), feed()
		to.ObserveInt64(live, number(b.Live))
		to.ObserveInt64(listeners, int64(f.Listeners))
		to.ObserveInt64(published, int64(b.Published))
		to.ObserveInt64(dropped, int64(b.Dropped+b.Failed))
		to.ObserveInt64(heard, int64(f.Heard))
		to.ObserveInt64(missed, int64(f.Missed))
		to.ObserveInt64(resets, int64(f.Resets))
		to.ObserveInt64(refused, int64(f.Refused))
		return nil
	}, all...)
	if err != nil {
		return fmt.Errorf("telemetry: events: %w", err)
	}
	return nil
}
