package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/timeout"
)

// countTimeout is the time limit of one count.
const countTimeout = 2 * time.Second

// TimerStats counts stored timers; [timeout.Queue.Stats] does.
type TimerStats func(ctx context.Context) ([]timeout.Stats, error)

// WatchTimersConfig configures [WatchTimers].
type WatchTimersConfig struct {
	Canary   bool          // the label role is canary, or else base
	Interval time.Duration // least time from one count to the next; default 10 s
}

// WatchTimers registers gauges of what stats counts. A collection of metrics calls stats if the latest
// result is older than the interval; calls never overlap. While the latest call failed, the gauges are
// absent. Gauges of the index are also absent if the index did not answer.
func WatchTimers(mp metric.MeterProvider, stats TimerStats, c WatchTimersConfig) error {
	m := mp.Meter(scope)
	open, err1 := newTimersOpen(m)
	dead, err2 := newTimersDead(m)
	pending, err3 := newTimersPending(m)
	paused, err4 := newTimersPaused(m)
	lag, err5 := newTimersDueLag(m)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return fmt.Errorf("telemetry: timer gauges: %w", err)
	}
	w := &timerStock{stats: stats, interval: cmp.Or(c.Interval, 10*time.Second)}
	_, err := m.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		for _, s := range w.latest(ctx) {
			kind := metric.WithAttributes(attribute.String("kind", s.Kind), role(c.Canary))
			partition := metric.WithAttributes(attribute.String("kind", s.Kind), attribute.String("partition", s.Partition), role(c.Canary))
			to.ObserveInt64(open, int64(s.Open), partition)
			to.ObserveInt64(dead, int64(s.Dead), partition)
			if !s.Unindexed {
				to.ObserveInt64(pending, int64(s.Pending), partition)
			}
			to.ObserveInt64(paused, number(s.Paused), kind)
			to.ObserveFloat64(lag, s.Overdue.Seconds(), kind) // the same for all partitions
		}
		return nil // an error would keep every other metric from being exported
	}, open, dead, pending, paused, lag)
	if err != nil {
		return fmt.Errorf("telemetry: timer gauges: %w", err)
	}
	return nil
}

// timerStock remembers the latest count.
type timerStock struct {
	stats    TimerStats
	interval time.Duration

	mu   sync.Mutex // held during a count, so that concurrent collections wait for its result
	next time.Time  // when the latest count expires
	last []timeout.Stats
}

// latest returns the latest count, or nil when it failed.
func (w *timerStock) latest(ctx context.Context) []timeout.Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.next) {
		return w.last
	}
	call, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	all, err := w.stats(call)
	if err != nil {
		all = nil
	}
	w.last, w.next = all[:min(len(all), kindsMax)], time.Now().Add(w.interval)
	return w.last
}
