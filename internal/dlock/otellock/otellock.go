// Package otellock adds OpenTelemetry traces and metrics to a [dlock.Locker] as a decorator.
//
// Three spans divide the time of a request. lock.acquire lasts while the caller waits for the key. lock.hold lasts
// from the grant until the key is released or lost. lock.release lasts for the request to the store. All are children
// of the caller's span. The work under the lease, which has [dlock.Lease.Context], is a child of lock.hold. A lost lease ends lock.hold with an error at the moment of the loss, even if its holder is
// still at work. It has no lock.release.
//
// A TryAcquireEach is one lock.acquire, with the numbers of keys asked for (lock.keys) and granted (lock.granted), and
// one lock.hold and lock.release for all keys that it was granted. They have no lock.key and no lock.fence.
//
// These are the metrics, with the names that Prometheus shows. They are never labeled with the key, because the number of keys
// is not bounded:
//
//	shop_lock_wait_seconds{backend,outcome}   time in a call; once for several keys
//	shop_lock_hold_seconds{backend,outcome}   from the grant to the end of the lease; once for several keys
//	shop_lock_refused_total{backend,outcome}  calls that got no lease
//	shop_lock_waiters{backend}                calls that wait for a lock
//	shop_locks_held{backend}                  keys of leases that have not ended
//	shop_lease_lost_total{backend,reason}     leases that ended without a release
//
// The decorator passes TryAcquireEach and RaiseCounter on. If the decorated Locker lacks one, the call fails with
// [errors.ErrUnsupported]. The package uses the OpenTelemetry API only, and starts no
// goroutine: a lease reports its own end.
package otellock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/dlock"
)

const scope = "example.com/shop/internal/dlock/otellock"

// Outcomes of an acquisition and of a hold; a hold that was lost has its
// [dlock.Reason] for an outcome.
const (
	outcomeAcquired  = "acquired"
	outcomeHeld      = "held"       // TryAcquire found another owner
	outcomeEnded     = "ended"      // the context ended first
	outcomeUncertain = "uncertain"  // no answer
	outcomeFailed    = "failed"     // any other error
	outcomeReleased  = "released"   //
	outcomeLeft      = "unreleased" // the release failed, and the TTL frees the key
)

// Config is the configuration of a [Locker].
type Config struct {
	Backend        string               // value of lock.backend and backend; empty means "unknown"
	TracerProvider trace.TracerProvider // nil records no spans
	MeterProvider  metric.MeterProvider // nil records no metrics
}

// Locker measures another Locker.
type Locker struct {
	next    dlock.Locker
	backend string
	tracer  trace.Tracer
	wait    metric.Float64Histogram
	hold    metric.Float64Histogram
	lost    metric.Int64Counter
	refused metric.Int64Counter
	held    metric.Int64UpDownCounter
	waiters metric.Int64UpDownCounter

	begin    sync.Once                           // the counters of losses
	plain    metric.MeasurementOption            // the label backend
	outcomes map[string]metric.MeasurementOption // backend and outcome, unless that is a loss
}

var (
	_ dlock.Locker        = (*Locker)(nil)
	_ dlock.EachLocker    = (*Locker)(nil)
	_ dlock.CounterRaiser = (*Locker)(nil)
)

// New returns a Locker that passes every call on to l. It fails when the meter
// provider refuses an instrument.
func New(l dlock.Locker, cfg Config) (*Locker, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = tracenoop.NewTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = metricnoop.NewMeterProvider()
	}
	meter := cfg.MeterProvider.Meter(scope)
	wait, errWait := newLockWait(meter)
	hold, errHold := newLockHold(meter)
	lost, errLost := newLeaseLost(meter)
	refused, errRefused := newLockRefused(meter)
	held, errHeld := newLocksHeld(meter)
	waiters, errWaiters := newLockWaiters(meter)
	if err := errors.Join(errWait, errHold, errLost, errRefused, errHeld, errWaiters); err != nil {
		return nil, fmt.Errorf("otellock: %w", err)
	}
	backend := cmp.Or(cfg.Backend, "unknown")
	measured := &Locker{
		next:    l,
		backend: backend,
		tracer:  cfg.TracerProvider.Tracer(scope),
		wait:    wait, hold: hold, lost: lost, refused: refused, held: held, waiters: waiters,
		plain:    metric.WithAttributeSet(attribute.NewSet(attribute.String("backend", backend))),
		outcomes: make(map[string]metric.MeasurementOption),
	}
	for _, o := range []string{outcomeAcquired, outcomeHeld, outcomeEnded, outcomeUncertain, outcomeFailed, outcomeReleased, outcomeLeft} {
		measured.outcomes[o] = measured.with("outcome", o)
	}
	return measured, nil
}

// Acquire implements [dlock.Locker].
func (l *Locker) Acquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.measure(ctx, key, 0, func(ctx context.Context) (*dlock.Lease, error) { return l.next.Acquire(ctx, key) })
}

// TryAcquire implements [dlock.Locker].
func (l *Locker) TryAcquire(ctx context.Context, key string) (*dlock.Lease, error) {
	return l.measure(ctx, key, 0, func(ctx context.Context) (*dlock.Lease, error) { return l.next.TryAcquire(ctx, key) })
}

// measure measures a call for key, or for each of so many keys.
func (l *Locker) measure(ctx context.Context, key string, each int, acquire func(context.Context) (*dlock.Lease, error)) (*dlock.Lease, error) {
	start, of := time.Now(), attribute.String("lock.key", key)
	if each > 0 {
		of = attribute.Int("lock.keys", each)
	}
	child, span := l.tracer.Start(ctx, "lock.acquire", l.attributes(of))
	defer span.End()
	l.begin.Do(func() { // a rate over a counter that begins at 1 misses the first event
		for _, r := range []dlock.Reason{dlock.Expired, dlock.Taken, dlock.Forced, dlock.MaxHold, dlock.Closed} {
			l.lost.Add(ctx, 0, l.with("reason", string(r)))
		}
	})
	l.waiters.Add(ctx, 1, l.plain)
	lease, err := acquire(child)
	l.waiters.Add(ctx, -1, l.plain)
	outcome, granted := acquisition(lease, err), 0
	labels := l.outcomes[outcome]
	l.wait.Record(ctx, time.Since(start).Seconds(), labels)
	span.SetAttributes(attribute.String("outcome", outcome))
	if err != nil && outcome != outcomeHeld { // an answer, not a failure
		fail(span, outcome, err)
	}
	if lease == nil {
		l.refused.Add(ctx, 1, labels)
	} else {
		granted = len(lease.Keys())
	}
	switch {
	case each > 0:
		span.SetAttributes(attribute.Int("lock.granted", granted))
		if lease != nil {
			l.follow(ctx, lease, attribute.Int("lock.keys", granted))
		}
	case lease != nil:
		fence := attribute.Int64("lock.fence", int64(lease.Fence().Token)) // tokens are microseconds or counters, far below the largest
		span.SetAttributes(fence)
		l.follow(ctx, lease, of, fence)
	}
	return lease, err
}

// follow opens lock.hold, which the end of lease closes. A release is recorded when it is over.
func (l *Locker) follow(ctx context.Context, lease *dlock.Lease, of ...attribute.KeyValue) {
	start, keys := time.Now(), int64(len(lease.Keys()))
	_, span := l.tracer.Start(ctx, "lock.hold", trace.WithTimestamp(start), l.attributes(of...))
	if span.IsRecording() {
		lease.Within(func(parent context.Context) context.Context { return trace.ContextWithSpan(parent, span) })
	}
	l.held.Add(ctx, keys, l.plain)
	lease.OnEnd(func(err error) {
		outcome, labels := outcomeReleased, l.outcomes[outcomeReleased]
		if lost, ok := errors.AsType[*dlock.LostError](err); ok {
			outcome = string(lost.Reason)
			labels = l.with("outcome", outcome)
			l.lost.Add(ctx, 1, l.with("reason", outcome))
		} else if !errors.Is(err, dlock.ErrReleased) {
			outcome, labels = outcomeLeft, l.outcomes[outcomeLeft]
		}
		if outcome != outcomeReleased {
			fail(span, outcome, err)
		}
		end, released := lease.Released()
		if released {
			_, release := l.tracer.Start(ctx, "lock.release", trace.WithTimestamp(end),
				l.attributes(append(slices.Clip(of), attribute.String("outcome", outcome))...))
			if outcome != outcomeReleased {
				fail(release, outcome, err)
			}
			release.End()
		} else {
			end = time.Now()
		}
		span.SetAttributes(attribute.String("outcome", outcome))
		span.End(trace.WithTimestamp(end))
		l.held.Add(ctx, -keys, l.plain)
		l.hold.Record(ctx, end.Sub(start).Seconds(), labels)
	})
}

// fail marks a span as failed, with the outcome as the type of its error.
func fail(span trace.Span, outcome string, err error) {
	span.SetAttributes(semconv.ErrorTypeKey.String(outcome))
	span.SetStatus(codes.Error, err.Error())
}

func (l *Locker) attributes(of ...attribute.KeyValue) trace.SpanStartOption {
	return trace.WithAttributes(append(slices.Clip(of), attribute.String("lock.backend", l.backend))...)
}

// with returns the label backend and another one.
func (l *Locker) with(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("backend", l.backend), attribute.String(key, value)))
}

func acquisition(lease *dlock.Lease, err error) string {
	switch {
	case err == nil && lease != nil:
		return outcomeAcquired
	case err == nil, errors.Is(err, dlock.ErrHeld): // of several keys, all are held
		return outcomeHeld
	case errors.Is(err, dlock.ErrUncertain):
		return outcomeUncertain
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return outcomeEnded
	default:
		return outcomeFailed
	}
}
