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

// kindsMax is how many kinds of timers have labels of their own. Programs have a few;
// beyond, something else has been used as a kind, and all others are one.
const kindsMax = 32

// logEvery is how often the same failure is logged.
const logEvery = 10 * time.Second

// lateness has room for a timer that is on time, one that the sweep took, and one
// that waited for somebody to repair something.
var latenessBounds = []float64{
	0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
}

// Timers counts what a [timeout.Queue] does, and logs what an operator has to know
// of. It is safe for concurrent use.
type Timers struct {
	timerMeters

	ctx    context.Context //nolint:containedctx // An observer gets none, and the instruments want one.
	log    *slog.Logger
	role   attribute.KeyValue
	logged sync.Map // of what failed, to when it was logged

	mu    sync.Mutex
	kinds map[string]*timerKind
}

var _ timeout.Observer = (*Timers)(nil)

// TimersConfig configures [NewTimers].
type TimersConfig struct {
	Canary bool         // the label role is canary, or else base
	Logger *slog.Logger // default: silent
}

// NewTimers returns an observer whose instruments are those of mp. The values of
// ctx, and not its end, go with everything that is recorded.
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
	settled, returned, repaired, failed        metric.Int64Counter
	late, handling                             metric.Float64Histogram
	offset                                     metric.Float64Gauge
	leading                                    metric.Int64Gauge
}

func (t *timerMeters) open(m metric.Meter) error {
	var errs []error
	for _, c := range []struct {
		to         *metric.Int64Counter
		name, what string
	}{
		{&t.scheduled, "scheduled", "Timers that were stored, and some whose transaction failed after that."},
		{&t.dropped, "hints_dropped", "Hints that did not get to the index; the reconciler repairs them."},
		{&t.woken, "wakeups", "What made a consumer ask the index."},
		{&t.claims, "claims", "Answers of the index to consumers: with timers, or empty."},
		{&t.claimed, "claimed", "Timers that were claimed from the index."},
		{&t.settled, "outcomes", "What became of timers in the hands of their handler."},
		{&t.returned, "returned", "Timers given back unhandled: too early, draining, or something was away."},
		{&t.repaired, "repairs", "What the reconciler had to put right; 0 in a healthy system."},
		{&t.failed, "failures", "Operations in the background that failed and are repeated."},
	} {
		var err error
		*c.to, err = m.Int64Counter("shop_timeout_"+c.name+"_total", metric.WithDescription(c.what))
		errs = append(errs, err)
	}
	var err1, err2, err3, err4 error
	t.late, err1 = m.Float64Histogram("shop_timeout_lateness_seconds", metric.WithUnit("s"),
		metric.WithDescription("From when a timer was due, or its next attempt, to its handler, by the database's clock."),
		metric.WithExplicitBucketBoundaries(latenessBounds...))
	t.handling, err2 = m.Float64Histogram("shop_timeout_handler_duration_seconds", metric.WithUnit("s"),
		metric.WithDescription("How long a handler took for a batch."),
		metric.WithExplicitBucketBoundaries(latenessBounds[:16]...))
	t.offset, err3 = m.Float64Gauge("shop_timeout_index_clock_offset_seconds", metric.WithUnit("s"),
		metric.WithDescription("How far the clock of the index is ahead of this instance's."))
	t.leading, err4 = m.Int64Gauge("shop_timeout_leading",
		metric.WithDescription("1 if this instance reconciles the kind, or else 0."))
	return errors.Join(append(errs, err1, err2, err3, err4)...)
}

// timerKind has the labels of a kind, made once: most of them are used for every timer.
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

// of returns the labels of a kind. Its counters are there from then on, at 0: a rate
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
	for _, v := range []timeout.Reason{timeout.RepairLookAhead, timeout.RepairOverdue, timeout.RepairRebuild, timeout.RepairReassign} {
		k.reasons[v] = with(attribute.String("reason", string(v)))
		k.repaired.Add(k.ctx, 0, k.reasons[v])
	}
	for _, c := range []metric.Int64Counter{k.scheduled, k.dropped, k.claimed, k.returned} {
		c.Add(k.ctx, 0, k.plain)
	}
	k.claims.Add(k.ctx, 0, k.some)
	k.claims.Add(k.ctx, 0, k.empty)
}
