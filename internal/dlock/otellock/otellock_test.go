package otellock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/dlocktest"
	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

const ttl = 10 * time.Second

func TestMain(m *testing.M) { testbedtest.Main(m) }

// A decorator keeps every promise of what it decorates.
func TestLocker(t *testing.T) {
	inner := memlock.New(memlock.Config{TTL: ttl})
	dlocktest.Run(t, dlocktest.Harness{
		New: func(t testing.TB) dlock.Locker {
			l, err := otellock.New(inner, otellock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
		TTL:       ttl,
		Expire:    func(_ testing.TB, key string) { inner.Expire(key) },
		FIFO:      true,
		Reentrant: true,
		Bubble:    synctest.Test,
	})
}

// rig is a measured lock service in memory.
type rig struct {
	*otellock.Locker
	inner  *memlock.Locker
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		inner:  memlock.New(memlock.Config{TTL: ttl}),
		spans:  tracetest.NewSpanRecorder(),
		reader: sdkmetric.NewManualReader(),
	}
	r.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	l, err := otellock.New(r.inner, otellock.Config{
		Backend:        "memory",
		TracerProvider: r.tracer,
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Locker = l
	return r
}

type span struct {
	Name     string
	Outcome  string
	Duration time.Duration
	Failed   bool
}

// ended returns the spans that have ended, and checks what all have in common.
func (r *rig) ended(t *testing.T, parent string, fence uint64) []span {
	t.Helper()
	var out []span
	for _, s := range r.spans.Ended() {
		if s.Name() == "request" {
			continue
		}
		attrs := attribute.NewSet(s.Attributes()...)
		outcome, _ := attrs.Value("outcome")
		if v, _ := attrs.Value("lock.backend"); v.AsString() != "memory" {
			t.Errorf("%s: lock.backend = %q", s.Name(), v.AsString())
		}
		if v, ok := attrs.Value("lock.fence"); ok && uint64(v.AsInt64()) != fence {
			t.Errorf("%s: lock.fence = %d, want %d", s.Name(), v.AsInt64(), fence)
		}
		if got := s.Parent().SpanID().String(); got != parent {
			t.Errorf("%s: parent %s, want the caller's span %s", s.Name(), got, parent)
		}
		checkError(t, s, outcome.AsString())
		out = append(out, span{s.Name(), outcome.AsString(), s.EndTime().Sub(s.StartTime()), s.Status().Code == codes.Error})
	}
	return out
}

// checkError checks that a span that failed says why, and that no other span has an error.
func checkError(t *testing.T, s sdktrace.ReadOnlySpan, outcome string) {
	t.Helper()
	attrs := attribute.NewSet(s.Attributes()...)
	kind, ok := attrs.Value("error.type")
	if failed := s.Status().Code == codes.Error; failed != ok || failed && kind.AsString() != outcome || failed != (s.Status().Description != "") {
		t.Errorf("%s with the outcome %s: status %v, error.type %q", s.Name(), outcome, s.Status(), kind.AsString())
	}
}

// points returns one line per series: name, labels, and the sum.
func (r *rig) points(t *testing.T) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					out[series(m.Name, p.Attributes)] = p.Sum
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					out[series(m.Name, p.Attributes)] = float64(p.Value)
				}
			}
		}
	}
	for _, reason := range []string{"expired", "taken", "forced", "max_hold", "closed"} {
		name := "shop.lease.lost{backend=memory,reason=" + reason + "}"
		n, ok := out[name]
		if !ok {
			t.Errorf("no %s from the first call on", name)
		}
		if n == 0 {
			delete(out, name)
		}
	}
	return out
}

func series(name string, labels attribute.Set) string {
	return name + "{" + labels.Encoded(attribute.DefaultEncoder()) + "}"
}

func TestReleasedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		first, err := r.inner.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*time.Second, func() {
			if n := r.points(t)["shop.lock.waiters{backend=memory}"]; n != 1 {
				t.Errorf("%v calls wait, want 1", n)
			}
			first.Release(t.Context())
		})

		ctx, request := r.tracer.Tracer("test").Start(t.Context(), "request")
		var fence uint64
		err = dlock.Do(ctx, r, "k", func(_ context.Context, f dlock.Fence) error {
			fence = f.Token
			time.Sleep(3 * time.Second)
			return nil
		})
		request.End()
		if err != nil {
			t.Fatal(err)
		}
		// The spans have ended when Do returns, so none is lost at shutdown.
		want := []span{
			{Name: "lock.acquire", Outcome: "acquired", Duration: 2 * time.Second},
			{Name: "lock.release", Outcome: "released"},
			{Name: "lock.hold", Outcome: "released", Duration: 3 * time.Second},
		}
		if diff := cmp.Diff(want, r.ended(t, request.SpanContext().SpanID().String(), fence)); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
		points := map[string]float64{
			"shop.lock.wait{backend=memory,outcome=acquired}": 2,
			"shop.lock.hold{backend=memory,outcome=released}": 3,
			"shop.locks.held{backend=memory}":                 0,
			"shop.lock.waiters{backend=memory}":               0,
		}
		if diff := cmp.Diff(points, r.points(t)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, request := r.tracer.Tracer("test").Start(t.Context(), "request")
		lease, err := r.Acquire(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		r.inner.Expire("k")
		time.Sleep(ttl) // and the holder has not noticed
		synctest.Wait()
		request.End()
		want := []span{
			{Name: "lock.acquire", Outcome: "acquired"},
			{Name: "lock.hold", Outcome: "expired", Duration: ttl / 3, Failed: true},
		}
		if diff := cmp.Diff(want, r.ended(t, request.SpanContext().SpanID().String(), lease.Fence().Token)); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
		if got := r.points(t)["shop.lease.lost{backend=memory,reason=expired}"]; got != 1 {
			t.Errorf("%v losses counted, want 1", got)
		}
		lease.Release(ctx)
		if got := r.points(t)["shop.lease.lost{backend=memory,reason=expired}"]; got != 1 {
			t.Errorf("%v losses counted after the release, want 1", got)
		}
	})
}

func TestFailedAcquisition(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		outcome string
		failed  bool
	}{
		"held":      {dlock.ErrHeld, "held", false},
		"ended":     {context.Canceled, "ended", true},
		"uncertain": {errors.Join(dlock.ErrUncertain, context.DeadlineExceeded), "uncertain", true},
		"failed":    {errors.New("store: out of memory"), "failed", true},
	} {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			l, err := otellock.New(dlocktest.Fails(c.err), otellock.Config{
				TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
			})
			if err != nil {
				t.Fatal(err)
			}
			lease, err := l.TryAcquire(t.Context(), "k")
			if lease != nil || !errors.Is(err, c.err) {
				t.Errorf("TryAcquire = %v, %v, want the error of the backend", lease, err)
			}
			got := spans.Ended()
			if len(got) != 1 || got[0].Name() != "lock.acquire" {
				t.Fatalf("spans = %v, want lock.acquire alone", got)
			}
			attrs := attribute.NewSet(got[0].Attributes()...)
			if v, _ := attrs.Value("outcome"); v.AsString() != c.outcome {
				t.Errorf("outcome = %q, want %q", v.AsString(), c.outcome)
			}
			checkError(t, got[0], c.outcome)
			if failed := got[0].Status().Code == codes.Error; failed != c.failed {
				t.Errorf("marked as failed: %v, want %v", failed, c.failed)
			}
		})
	}
}
