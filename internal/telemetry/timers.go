package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/timeout"
)

// kindsMax is how many kinds of timers have labels of their own. All further kinds share the label "other",
// so that a program that uses ids as kinds does not create a series per id.
const kindsMax = 32

// logEvery is the least time between two log lines for the same failure.
const logEvery = 10 * time.Second

// firingDelayBounds are the histogram buckets. They separate timers that fire on time, timers that only the overdue
// scan found, and timers that waited for an operator.
var firingDelayBounds = []float64{
	0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
}

// Timers counts the operations of a [timeout.Queue], and logs failures that an operator must know
// about. It is safe for concurrent use.
type Timers struct {
	timerMeters

	ctx    context.Context //nolint:containedctx // Methods of an observer have no context, and instruments need one.
	log    *slog.Logger
	role   attribute.KeyValue
	logged sync.Map // from [3]string, see shouldLog, to the time of the latest log line

	mu    sync.Mutex
	kinds map[string]*timerKind
}

var _ timeout.Observer = (*Timers)(nil)

// TimersConfig configures [NewTimers].
type TimersConfig struct {
	Canary bool         // the label role is canary, or else base
	Logger *slog.Logger // default: silent
}

// NewTimers returns an observer whose instruments are those of mp. Recordings carry the values
// of ctx, but not its cancellation.
func NewTimers(ctx context.Context, mp metric.MeterProvider, c TimersConfig) (*Timers, error) {
	t := &Timers{ctx: context.WithoutCancel(ctx), log: c.Logger, role: role(c.Canary), kinds: make(map[string]*timerKind)}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	if err := t.open(mp.Meter(scope)); err != nil {
		return nil, fmt.Errorf("telemetry: timer metrics: %w", err)
	}
	return t, nil
}

func role(canary bool) attribute.KeyValue {
	if canary {
		return attribute.String("role", "canary")
	}
	return attribute.String("role", "base")
}

// timerMeters are the instruments, each with the labels kind and role.
type timerMeters struct {
	scheduled, dropped, woken, claims, claimed metric.Int64Counter
	settled, nacked, repaired, failed          metric.Int64Counter
	firingDelay, handling                      metric.Float64Histogram
	offset                                     metric.Float64Gauge
}

func (t *timerMeters) open(m metric.Meter) error {
	var errs []error
	for _, c := range []struct {
		to         *metric.Int64Counter
		name, what string
	}{
		{&t.scheduled, "scheduled", "Timers that were stored, including those whose transaction failed later."},
		{&t.dropped, "index_entries_dropped", "Index entries that were dropped; a look-ahead pass or the overdue scan finds their timers."},
		{&t.woken, "wakeups", "Polls of the index by a consumer, by cause."},
		{&t.claims, "claims", "Claims by consumers: with timers, or empty."},
		{&t.claimed, "claimed", "Timers that were claimed from the index."},
		{&t.settled, "outcomes", "Timers that a handler received, by outcome."},
		{&t.nacked, "nacked", "Claims returned unhandled: too early, draining, or a store was unavailable."},
		{&t.repaired, "repairs", "Timers that the overdue scan handled or reassigned; 0 in a healthy system."},
		{&t.failed, "failures", "Background operations that failed and are retried."},
	} {
		var err error
		*c.to, err = m.Int64Counter("shop_timers_"+c.name+"_total", metric.WithDescription(c.what))
		errs = append(errs, err)
	}
	var err1, err2, err3 error
	t.firingDelay, err1 = m.Float64Histogram("shop_timers_firing_delay_seconds", metric.WithUnit("s"),
		metric.WithDescription("From the due time of a timer, or of its next attempt, to its handler, by the database's clock."),
		metric.WithExplicitBucketBoundaries(firingDelayBounds...))
	t.handling, err2 = m.Float64Histogram("shop_timers_handler_duration_seconds", metric.WithUnit("s"),
		metric.WithDescription("Duration of a handler for a batch."),
		metric.WithExplicitBucketBoundaries(firingDelayBounds[:16]...))
	t.offset, err3 = m.Float64Gauge("shop_timers_index_clock_offset_seconds", metric.WithUnit("s"),
		metric.WithDescription("Clock of the index minus clock of this instance."))
	return errors.Join(append(errs, err1, err2, err3)...)
}

// timerKind has the labels of a kind, made once because most of them are needed for every timer.
type timerKind struct {
	timerMeters

	ctx      context.Context //nolint:containedctx // That of Timers.
	plain    metric.MeasurementOption
	some     metric.MeasurementOption
	empty    metric.MeasurementOption
	ok, bad  metric.MeasurementOption
	wakers   map[timeout.Waker]metric.MeasurementOption
	verdicts map[timeout.Verdict]metric.MeasurementOption
	reasons  map[timeout.Reason]metric.MeasurementOption
}

// of returns the labels of a kind. The first call creates its counters at 0, because a rate
// over a counter that begins at 1 misses the first event.
func (t *Timers) of(kind string) *timerKind {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.kinds[kind]
	if !ok && len(t.kinds) >= kindsMax {
		kind = "other"
		k, ok = t.kinds[kind]
	}
	if ok {
		return k
	}
	with := func(labels ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(labels, attribute.String("kind", kind), t.role)...))
	}
	k = &timerKind{
		timerMeters: t.timerMeters, ctx: t.ctx, plain: with(),
		some: with(attribute.String("result", "timers")), empty: with(attribute.String("result", "empty")),
		ok: with(attribute.String("result", "ok")), bad: with(attribute.String("result", "error")),
		wakers:   make(map[timeout.Waker]metric.MeasurementOption),
		verdicts: make(map[timeout.Verdict]metric.MeasurementOption),
		reasons:  make(map[timeout.Reason]metric.MeasurementOption),
	}
	t.kinds[kind] = k
	k.zero(with)
	return k
}

func (k *timerKind) zero(with func(...attribute.KeyValue) metric.MeasurementOption) {
	for _, v := range []timeout.Waker{timeout.WokenTimer, timeout.WokenPoll, timeout.WokenMessage, timeout.WokenBacklog} {
		k.wakers[v] = with(attribute.String("by", string(v)))
		k.woken.Add(k.ctx, 0, k.wakers[v])
	}
	for _, v := range []timeout.Verdict{timeout.VerdictDone, timeout.VerdictCommitted, timeout.VerdictRetry, timeout.VerdictNotDue, timeout.VerdictDead} {
		k.verdicts[v] = with(attribute.String("outcome", string(v)))
		k.settled.Add(k.ctx, 0, k.verdicts[v])
	}
	for _, v := range []timeout.Reason{timeout.RepairOverdue, timeout.RepairReassign} {
		k.reasons[v] = with(attribute.String("reason", string(v)))
		k.repaired.Add(k.ctx, 0, k.reasons[v])
	}
	for _, c := range []metric.Int64Counter{k.scheduled, k.dropped, k.claimed, k.nacked} {
		c.Add(k.ctx, 0, k.plain)
	}
	k.claims.Add(k.ctx, 0, k.some)
	k.claims.Add(k.ctx, 0, k.empty)
}
