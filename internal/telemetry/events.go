package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/events"
)

// WatchEvents makes metrics show what the publisher and the feed of this instance count.
func WatchEvents(mp metric.MeterProvider, publisher func() (published, dropped uint64), feed func() events.Stats) error {
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
	live := gauge("_live", "1 while the log of events can be read, or else 0.")
	listeners := gauge("_listeners", "Clients that follow the events of this instance.")
	sent := counter("_published", "Events that this instance has published.")
	lost := counter("_dropped", "Of them those that were dropped, as too many waited for the log.")
	heard := counter("_heard", "Events of all instances that were read from the log.")
	missed := counter("_missed", "How often events may have been missed.")
	resets := counter("_resets", "How often a client was told to start anew.")
	refused := counter("_refused", "Clients for whom there was no room.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: events: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		published, dropped := publisher()
		f := feed()
		to.ObserveInt64(live, number(f.Live))
		to.ObserveInt64(listeners, int64(f.Listeners))
		to.ObserveInt64(sent, int64(published))
		to.ObserveInt64(lost, int64(dropped))
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
