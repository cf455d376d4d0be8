package telemetry_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	logscollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"example.com/shop/internal/dlock/memlock"
	"example.com/shop/internal/dlock/otellock"
	"example.com/shop/internal/telemetry"
)

// received is what an OTLP receiver got.
type received struct {
	mu      sync.Mutex
	records []*logspb.LogRecord
	metrics map[string]*metricspb.Metric
}

func receive(t *testing.T) *received {
	t.Helper()
	got := &received{metrics: make(map[string]*metricspb.Metric)}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		logs, metrics := new(logscollector.ExportLogsServiceRequest), new(metricscollector.ExportMetricsServiceRequest)
		switch path.Base(r.URL.Path) {
		case "logs":
			err = proto.Unmarshal(body, logs)
		case "metrics":
			err = proto.Unmarshal(body, metrics)
		}
		if err != nil {
			t.Error(err)
		}
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, from := range logs.GetResourceLogs() {
			for _, scope := range from.GetScopeLogs() {
				got.records = append(got.records, scope.GetLogRecords()...)
			}
		}
		for _, from := range metrics.GetResourceMetrics() {
			for _, scope := range from.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					got.metrics[m.GetName()] = m
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	return got
}

// Log lines are exported from the level of the log on, with the trace of their context, alongside those that are written.
func TestLogsAreExported(t *testing.T) {
	got := receive(t)
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	level := new(slog.LevelVar)
	log := tel.Logger(telemetry.NewLogger(&written, level), level)
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	log.DebugContext(ctx, "too much")
	log.With("sku", "a").InfoContext(ctx, "sold")
	level.Set(slog.LevelDebug)
	log.WithGroup("of").DebugContext(ctx, "detail", "n", 1)
	span.End()
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, r := range got.records {
		bodies = append(bodies, r.GetBody().GetStringValue())
		if id := span.SpanContext().TraceID(); string(r.GetTraceId()) != string(id[:]) {
			t.Errorf("%v has another trace", r)
		}
	}
	if all := strings.Join(bodies, ", "); all != "sold, detail" {
		t.Errorf("exported: %s", all)
	}
	if n := strings.Count(written.String(), "\n"); n != 2 {
		t.Errorf("%d lines are written, want 2:\n%s", n, written.String())
	}
}

// With the variable of OpenTelemetry for it, histograms are exponential over OTLP, and /metrics keeps the buckets that users have.
func TestExponentialHistograms(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", "base2_exponential_bucket_histogram")
	got := receive(t)
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	locks, err := otellock.New(memlock.New(memlock.Config{}), otellock.Config{Backend: "memory", MeterProvider: tel.MeterProvider})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if page := scrape(t, tel); !has(page, `shop_lock_wait_seconds_bucket{backend="memory",outcome="acquired",le="0.0005"}`) {
		t.Error("/metrics has lost its buckets")
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(got.metrics["shop.lock.wait"].GetExponentialHistogram().GetDataPoints()); n != 1 {
		t.Errorf("%d exponential histograms of the lock wait", n)
	}
	if got.metrics["go.goroutine.count"] == nil {
		t.Error("no metrics of the Go runtime")
	}
}
