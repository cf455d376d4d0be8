package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/events"
)

// WatchEvents registers metrics of the event publisher and the feed of this instance.
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
	live := gauge("_live", "1 while the event log can be read, or else 0.")
	listeners := gauge("_listeners", "Clients that subscribe to the events of this instance.")
	published := counter("_published", "Events that this instance has published.")
	dropped := counter("_dropped", "Published events that were dropped because the queue to the event log was full.")
	received := counter("_received", "Events of all instances that were received from the event log.")
	missed := counter("_missed", "Gaps in the event log, in which events may have been missed.")
	resets := counter("_resets", "Reset events, after which a client reloads its state.")
	refused := counter("_refused", "Subscriptions refused because there were too many.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: events: %w", err)
	}
	_, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		sent, lost := publisher()
		f := feed()
		to.ObserveInt64(live, number(f.Live))
		to.ObserveInt64(listeners, int64(f.Listeners))
		to.ObserveInt64(published, int64(sent))
		to.ObserveInt64(dropped, int64(lost))
		to.ObserveInt64(received, int64(f.Received))
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
