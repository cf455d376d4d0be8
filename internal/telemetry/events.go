package telemetry

import (
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/events"
)

// WatchEvents registers metrics of the event publisher and the feed of this instance.
func WatchEvents(mp metric.MeterProvider, publisher func() (published, dropped uint64), feed func() events.Stats) error {
	return watchState(mp, "events", constructors{
		newEventsLive, newEventsListeners, newEventsPublished, newEventsDropped,
		newEventsReceived, newEventsMissed, newEventsResets, newEventsRefused,
	}, func() []int64 {
		sent, lost := publisher()
		f := feed()
		return []int64{
			number(f.Live), int64(f.Listeners), int64(sent), int64(lost),
			int64(f.Received), int64(f.Missed), int64(f.Resets), int64(f.Refused),
		}
	})
}
