package telemetry

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"example.com/shop/internal/timeout"
)

// Scheduled implements [timeout.Observer].
func (t *Timers) Scheduled(kind string, n int) {
	k := t.of(kind)
	k.scheduled.Add(k.ctx, int64(n), k.plain)
}

// EntriesDropped implements [timeout.Observer].
func (t *Timers) EntriesDropped(kind string, n int) {
	k := t.of(kind)
	k.dropped.Add(k.ctx, int64(n), k.plain)
}

// Woken implements [timeout.Observer].
func (t *Timers) Woken(kind string, by timeout.Waker) {
	k := t.of(kind)
	if l := k.wakers[by]; l != nil {
		k.woken.Add(k.ctx, 1, l)
	}
}

// Claimed implements [timeout.Observer].
func (t *Timers) Claimed(kind string, n int) {
	k := t.of(kind)
	if n == 0 {
		k.claims.Add(k.ctx, 1, k.empty)
		return
	}
	k.claims.Add(k.ctx, 1, k.some)
	k.claimed.Add(k.ctx, int64(n), k.plain)
}

// Fired implements [timeout.Observer].
func (t *Timers) Fired(kind string, delay time.Duration, _ timeout.Fired) {
	k := t.of(kind)
	k.firingDelay.Record(k.ctx, delay.Seconds(), k.plain)
}

// Handled implements [timeout.Observer].
func (t *Timers) Handled(kind string, n int, took time.Duration, err error) {
	k := t.of(kind)
	if err == nil {
		k.handling.Record(k.ctx, took.Seconds(), k.ok)
		return
	}
	k.handling.Record(k.ctx, took.Seconds(), k.bad)
	if t.shouldLog("handled", kind, "") {
		t.log.LogAttrs(t.ctx, slog.LevelWarn, "handler failed for a batch of timers", slog.String("kind", kind), slog.Int("timers", n), slog.Any("error", err))
	}
}

// Settled implements [timeout.Observer].
func (t *Timers) Settled(kind string, v timeout.Verdict, n int) {
	k := t.of(kind)
	if l := k.verdicts[v]; l != nil {
		k.settled.Add(k.ctx, int64(n), l)
	}
	if v == timeout.VerdictDead {
		t.log.LogAttrs(t.ctx, slog.LevelError, "timers are dead until redriven", slog.String("kind", kind), slog.Int("timers", n))
	}
}

// Nacked implements [timeout.Observer].
func (t *Timers) Nacked(kind string, n int) {
	k := t.of(kind)
	k.nacked.Add(k.ctx, int64(n), k.plain)
}

// Repaired implements [timeout.Observer].
func (t *Timers) Repaired(kind string, why timeout.Reason, n int) {
	k := t.of(kind)
	if l := k.reasons[why]; l != nil {
		k.repaired.Add(k.ctx, int64(n), l)
	}
	if t.shouldLog("repaired", kind, string(why)) {
		t.log.LogAttrs(t.ctx, slog.LevelWarn, "timers repaired", slog.String("kind", kind), slog.String("reason", string(why)), slog.Int("timers", n))
	}
}

// Offset implements [timeout.Observer].
func (t *Timers) Offset(kind string, offset time.Duration) {
	k := t.of(kind)
	k.offset.Record(k.ctx, offset.Seconds(), k.plain)
}

// Failed implements [timeout.Observer].
func (t *Timers) Failed(kind, during string, err error) {
	labels := []attribute.KeyValue{attribute.String("during", during), t.role}
	if kind != "" { // otherwise the failure concerns all kinds
		labels = append(labels, attribute.String("kind", kind))
	}
	t.failed.Add(t.ctx, 1, metric.WithAttributes(labels...))
	if t.shouldLog("failed", kind, during) {
		t.log.LogAttrs(t.ctx, slog.LevelWarn, "operation on timers failed, retrying",
			slog.String("kind", kind), slog.String("during", during), slog.Any("error", err))
	}
}

// shouldLog reports whether logEvery has passed since the latest log line for the same failure.
func (t *Timers) shouldLog(what, kind, during string) bool {
	key := [3]string{what, kind, during}
	now := time.Now()
	if last, ok := t.logged.Load(key); ok && now.Sub(last.(time.Time)) < logEvery { //nolint:errcheck,forcetypeassert // Only times are stored.
		return false
	}
	t.logged.Store(key, now)
	return true
}
