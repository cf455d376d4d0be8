package telemetry

import (
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/events"
)

// WatchEvents registers metrics of the event publisher and the feed of this instance.
func WatchEvents(mp metric.MeterProvider, publisher func() (published, dropped uint64), feed func() events.Stats) error {
	return watchState(mp, "events", []instrument{
		{"shop_events_live", "1 while the event log can be read, or else 0."},
		{"shop_events_listeners", "Clients that subscribe to the events of this instance."},
		{"shop_events_published_total", "Events that this instance has published."},
		{"shop_events_dropped_total", "Published events that were dropped because the queue to the event log was full."},
		{"shop_events_received_total", "Events of all instances that were received from the event log."},
		{"shop_events_missed_total", "Gaps in the event log, in which events may have been missed."},
		{"shop_events_resets_total", "Reset events, after which a client reloads its state."},
		{"shop_events_refused_total", "Subscriptions refused because there were too many."},
	}, func() []int64 {
		sent, lost := publisher()
		f := feed()
		return []int64{
			number(f.Live), int64(f.Listeners), int64(sent), int64(lost),
			int64(f.Received), int64(f.Missed), int64(f.Resets), int64(f.Refused),
		}
	})
}
