package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/shop/internal/platform/redisclient"
	"example.com/shop/internal/platform/redisx"
	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/telemetry"
)

// receiver is an OTLP receiver that remembers which paths were posted to.
func receiver(tb testing.TB) (url string, paths func() map[string]bool) {
	tb.Helper()
	var mu sync.Mutex
	seen := make(map[string]bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.Method+" "+r.URL.Path] = true
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	tb.Cleanup(s.Close)
	return s.URL, func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

func TestExport(t *testing.T) {
	const (
		general = "OTEL_EXPORTER_OTLP_ENDPOINT"
		traces  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		metrics = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	)
	for _, c := range []struct {
		name     string
		variable string // set to the receiver's URL and path
		off      string // set to value
		value    string
		path     string
		want     map[string]bool
	}{
		{
			name: "environment", variable: general,
			want: map[string]bool{"POST /v1/traces": true, "POST /v1/metrics": true, "POST /v1/logs": true},
		},
		{
			name: "environment, traces only", variable: traces, path: "/own/path",
			want: map[string]bool{"POST /own/path": true},
		},
		{
			name: "environment, below a path", variable: general, path: "/below/",
			want: map[string]bool{"POST /below/v1/traces": true, "POST /below/v1/metrics": true, "POST /below/v1/logs": true},
		},
		{name: "nowhere", want: map[string]bool{}},
		{name: "disabled", variable: general, off: "OTEL_SDK_DISABLED", value: "TRUE", want: map[string]bool{}},
		{
			name: "no traces", variable: general, off: "OTEL_TRACES_EXPORTER", value: "none",
			want: map[string]bool{"POST /v1/metrics": true, "POST /v1/logs": true},
		},
		{
			name: "no metrics", variable: general, off: "OTEL_METRICS_EXPORTER", value: "none",
			want: map[string]bool{"POST /v1/traces": true, "POST /v1/logs": true},
		},
		{
			name: "no logs", variable: general, off: "OTEL_LOGS_EXPORTER", value: "none",
			want: map[string]bool{"POST /v1/traces": true, "POST /v1/metrics": true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(general, "")
			t.Setenv(traces, "")
			t.Setenv(metrics, "")
			if c.off != "" {
				t.Setenv(c.off, c.value)
			}
			url, paths := receiver(t)
			if c.variable != "" {
				t.Setenv(c.variable, url+c.path)
			}
			tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := telemetry.NewObserver(t.Context(), tel.MeterProvider); err != nil {
				t.Fatal(err)
			}
			_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
			span.End()
			tel.Logger(slog.New(slog.DiscardHandler), slog.LevelInfo).Info("done")
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, paths()); diff != "" {
				t.Errorf("exported to (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMalformedEndpointIsRefused(t *testing.T) {
	for _, raw := range []string{"localhost:4318", "http://", "ftp://localhost", "http://a b", "://"} {
		t.Run(raw, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", raw)
			_, err := telemetry.Setup(t.Context(), telemetry.Config{})
			if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT") || strings.Contains(err.Error(), "\n") {
				t.Errorf("Setup: %v, want one line that names the variable", err)
			}
		})
	}
}

func TestUnknownExporterIsRefused(t *testing.T) {
	for variable, value := range map[string]string{"OTEL_TRACES_EXPORTER": "memroy", "OTEL_METRICS_EXPORTER": "memory", "OTEL_LOGS_EXPORTER": "oltp"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			if _, err := telemetry.Setup(t.Context(), telemetry.Config{}); err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), "otlp") {
				t.Errorf("Setup: %v, want a line that names the variable and what it may be", err)
			}
		})
	}
}

// TestShutdownEndsWithItsContext has a receiver that never answers.
func TestShutdownEndsWithItsContext(t *testing.T) {
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer s.Close()
	defer close(stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	span.End()
	still := testbedtest.DetectStalls(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tel.Shutdown(ctx); err == nil {
		t.Error("Shutdown reports no error, though nothing was exported")
	}
	if d := time.Since(start) - still.Longest(); d > 8*time.Second { // the exporter would continue for ten
		t.Errorf("Shutdown took %v", d)
	}
}

func TestPropagator(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	in := propagation.MapCarrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"baggage":     "tenant=a",
	}
	ctx := tel.Propagator.Extract(t.Context(), in)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %s", got)
	}
	out := propagation.MapCarrier{}
	tel.Propagator.Inject(ctx, out)
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("headers (-in +out):\n%s", diff)
	}
}

func TestRedisSpans(t *testing.T) {
	spans := keep{tracetest.NewInMemoryExporter()}
	tel := setup(t, telemetry.Config{Spans: spans})
	rdb, err := redisclient.New(testbedtest.StartRedis(t, testbed.RedisConfig{}).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := telemetry.InstrumentRedis(rdb, "locks", tel); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Get(t.Context(), "poll").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if n := len(spans.GetSpans()); n != 0 {
		t.Errorf("%d spans of a poll", n)
	}
	ctx, parent := tel.TracerProvider.Tracer("test").Start(t.Context(), "work")
	if err := rdb.Set(ctx, "shop:lock:{sku:mug}", "secret-owner", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Get(ctx, "secret-owner").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	const double = "if not tonumber(ARGV[1]) then return redis.error_reply('ERR '..ARGV[1]) end return 2 * tonumber(ARGV[1])"
	script := redisx.Folder{Files: fstest.MapFS{"lua/double.lua": {Data: []byte(double)}}}.Script("double")
	if _, err := script.Run(ctx, rdb, []string{"k"}, []any{"secret-owner"}); err == nil || !strings.Contains(err.Error(), "secret-owner") {
		t.Errorf("the double of a text: %v", err)
	}
	if v, err := script.Run(ctx, rdb, []string{"k"}, []any{"21"}); err != nil || v != int64(42) {
		t.Fatal(v, err)
	}
	if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "n")
		return p.Incr(ctx, "n").Err()
	}); err != nil {
		t.Fatal(err)
	}
	parent.End()
	var got []string
	for _, s := range spans.GetSpans() {
		if s.Name != "work" && s.Parent.SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is not below its caller's span", s.Name)
		}
		got = append(got, s.Name+": "+s.Status.Code.String())
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "secret-owner") {
				t.Errorf("%s shows an argument in %s", s.Name, a.Key)
			}
		}
		if text := s.Status.Description; strings.Contains(text, "secret-owner") || s.Status.Code == codes.Error && text == "" {
			t.Errorf("%s failed with %q", s.Name, text)
		}
	}
	want := []string{"SET: Unset", "GET: Unset", "EVALSHA double: Unset", "EVAL: Error", "EVALSHA double: Unset", "PIPELINE INCR: Unset", "work: Unset"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if page := scrape(t, tel); !has(page, `db_client_connection_count{db_client_connection_pool_name="locks",db_client_connection_state="idle"}`) {
		t.Errorf("no metrics of the connection pool: %v", page)
	}
}
