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
		to        *metric.Int64Counter
		construct func(metric.Meter) (metric.Int64Counter, error)
	}{
		{&t.scheduled, newTimersScheduled},
		{&t.dropped, newTimersIndexEntriesDropped},
		{&t.woken, newTimersWakeups},
		{&t.claims, newTimersClaims},
		{&t.claimed, newTimersClaimed},
		{&t.settled, newTimersOutcomes},
		{&t.nacked, newTimersNacked},
		{&t.repaired, newTimersRepairs},
		{&t.failed, newTimersFailures},
	} {
		var err error
		*c.to, err = c.construct(m)
		errs = append(errs, err)
	}
	var err1, err2, err3 error
	t.firingDelay, err1 = newTimersFiringDelay(m)
	t.handling, err2 = newTimersHandlerDuration(m)
	t.offset, err3 = newTimersIndexClockOffset(m)
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
	for _, during := range []string{"claim", "load", "look ahead", "overdue scan", "put entries"} { // those that need a store
		k.failed.Add(k.ctx, 0, with(attribute.String("during", during)))
	}
	for _, c := range []metric.Int64Counter{k.scheduled, k.dropped, k.claimed, k.nacked} {
		c.Add(k.ctx, 0, k.plain)
	}
	k.claims.Add(k.ctx, 0, k.some)
	k.claims.Add(k.ctx, 0, k.empty)
}
