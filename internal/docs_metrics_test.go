package internal_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/telemetry"
)

// registered are the instruments that a program has registered: kind and description, by name.
type registered map[string][2]string

// recorder is a meter provider that notes what is registered.
type recorder struct {
	noop.MeterProvider

	all registered
}

func (r recorder) Meter(string, ...metric.MeterOption) metric.Meter { return meter{all: r.all} }

type meter struct {
	noop.Meter

	all registered
}

func (m meter) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	m.all[name] = [2]string{"counter", metric.NewInt64CounterConfig(o...).Description()}
	return m.Meter.Int64Counter(name)
}

func (m meter) Int64UpDownCounter(name string, o ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	m.all[name] = [2]string{"gauge", metric.NewInt64UpDownCounterConfig(o...).Description()}
	return m.Meter.Int64UpDownCounter(name)
}

func (m meter) Int64Gauge(name string, o ...metric.Int64GaugeOption) (metric.Int64Gauge, error) {
	m.all[name] = [2]string{"gauge", metric.NewInt64GaugeConfig(o...).Description()}
	return m.Meter.Int64Gauge(name)
}

func (m meter) Float64Gauge(name string, o ...metric.Float64GaugeOption) (metric.Float64Gauge, error) {
	m.all[name] = [2]string{"gauge", metric.NewFloat64GaugeConfig(o...).Description()}
	return m.Meter.Float64Gauge(name)
}

func (m meter) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	m.all[name] = [2]string{"histogram", metric.NewFloat64HistogramConfig(o...).Description()}
	return m.Meter.Float64Histogram(name)
}

func (m meter) Int64ObservableGauge(name string, o ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	m.all[name] = [2]string{"gauge", metric.NewInt64ObservableGaugeConfig(o...).Description()}
	return m.Meter.Int64ObservableGauge(name)
}

func (m meter) Float64ObservableGauge(name string, o ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	m.all[name] = [2]string{"gauge", metric.NewFloat64ObservableGaugeConfig(o...).Description()}
	return m.Meter.Float64ObservableGauge(name)
}

func (m meter) Int64ObservableCounter(name string, o ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	m.all[name] = [2]string{"counter", metric.NewInt64ObservableCounterConfig(o...).Description()}
	return m.Meter.Int64ObservableCounter(name)
}

// docs/reference/metrics.md lists the metrics that the program registers, with their types and descriptions.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	r := recorder{all: make(registered)}
	for _, register := range []func() error{
		func() error { _, err := telemetry.NewObserver(t.Context(), r); return err },
		func() error { _, err := telemetry.NewTimers(t.Context(), r, telemetry.TimersConfig{}); return err },
		func() error { return telemetry.WatchTimers(r, nil, telemetry.WatchTimersConfig{}) },
		func() error { return telemetry.WatchPermits(r, nil) },
		func() error { return telemetry.WatchAdaptiveLimit(r, nil) },
		func() error { return telemetry.WatchWaitlist(r, nil) },
		func() error { return telemetry.WatchEvents(r, nil, nil) },
		func() error {
			_, err := telemetry.WatchOversold(r, nil)
			return err
		},
		func() error {
			_, err := otellock.New(memlock.New(memlock.Config{}), otellock.Config{MeterProvider: r})
			return err
		},
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range metricNames(t) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(r.all)), func(name string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Errorf("%s is in the sources, and this test does not register it", prefix)
		}
	}
	said := map[string]bool{}
	for _, row := range readPages(t)["docs/reference/metrics.md"].table(t, "metric", "type", "labels", "meaning") {
		name := strings.Trim(row[0], "`")
		said[name] = true
		if is := r.all[name]; is[0] != row[1] || is[1] != row[3] {
			t.Errorf("%s: the page says %q, %q; the code %q, %q", name, row[1], row[3], is[0], is[1])
		}
	}
	for name, is := range r.all {
		if !said[name] {
			t.Errorf("the page has no | `%s` | %s | | %s |", name, is[0], is[1])
		}
	}
}

// metricNames are the names of metrics, or their beginnings, in the sources of the program.
func metricNames(t *testing.T) (all []string) {
	t.Helper()
	form := regexp.MustCompile(`(?:(?:Counter|Gauge|Histogram)\(|\{)\s*"(shop_[a-z_]+)",`)
	for _, text := range goSources(t) {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d metrics are in the sources", len(all))
	}
	return all
}
