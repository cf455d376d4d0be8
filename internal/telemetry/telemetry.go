package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope names this package as the source of the instruments that it makes.
const scope = "example.com/shop/internal/telemetry"

// maxScrapes is how many scrapes are answered at once; more get 503.
const maxScrapes = 4

// Config configures [Setup].
type Config struct {
	Version  string // service.version; default none
	Instance string // service.instance.id; default none

	// Spans receives each span as soon as it ends, instead of the OTLP
	// endpoint. It is for tests.
	Spans sdktrace.SpanExporter

	// Logger logs exports that fail. Default: OpenTelemetry's, which prints
	// to standard error.
	Logger *slog.Logger
}

// Telemetry has the providers of tracers and instruments. Its fields are read-only and
// safe for concurrent use.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	Propagator     propagation.TextMapPropagator // W3C trace context and baggage

	// Metrics serves all metrics of the process to Prometheus.
	Metrics http.Handler

	// SpansOf returns the spans of an order that this instance has recorded in the last minutes, the earliest first, and since when
	// it keeps spans. It is nil if none are recorded.
	SpansOf func(order string) (spans []Span, since time.Time)

	logs     *sdklog.LoggerProvider // nil: logs are not exported
	shutdown []func(context.Context) error
}

// Setup creates the providers that c and the environment configure. Traces, metrics and logs are exported to
// OTEL_EXPORTER_OTLP_ENDPOINT, or to the variable for the one signal; when both are empty, nothing is. OTEL_TRACES_EXPORTER,
// OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER choose another exporter, such as console or none. OTEL_TRACES_EXPORTER=memory records
// spans for [Telemetry.SpansOf] only. All other variables of OpenTelemetry apply. OTEL_SDK_DISABLED=true wins over all of them; the page for Prometheus stays. It fails if an endpoint is no URL. It does not wait for a receiver, because the service works
// without one. The caller must call Shutdown.
func Setup(ctx context.Context, c Config) (*Telemetry, error) {
	traces, err1 := exports("TRACES")
	metrics, err2 := exports("METRICS")
	logs, err3 := exports("LOGS")
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	res, err := describe(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Logger != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			c.Logger.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "telemetry failed", slog.Any("error", err))
		}))
	}
	t := &Telemetry{Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})}
	if err := t.trace(ctx, res, traces, c.Spans); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if err := t.measure(ctx, res, metrics); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if logs {
		e, err := autoexport.NewLogExporter(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("telemetry: export logs: %w", err), t.Shutdown(ctx))
		}
		t.logs = sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewBatchProcessor(e)))
		t.shutdown = append(t.shutdown, t.logs.Shutdown)
	}
	return t, nil
}

// describe returns the resource attributes of all spans and metrics. The
// operator's OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME override them.
func describe(ctx context.Context, c Config) (*resource.Resource, error) {
	attrs := []attribute.KeyValue{semconv.ServiceName("shop")}
	if c.Version != "" {
		attrs = append(attrs, semconv.ServiceVersion(c.Version))
	}
	if c.Instance != "" {
		attrs = append(attrs, semconv.ServiceInstanceID(c.Instance))
	}
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: describe this process: %w", err)
	}
	return res, nil
}

// trace sets up the tracer provider.
func (t *Telemetry) trace(ctx context.Context, res *resource.Resource, export bool, spans sdktrace.SpanExporter) error {
	limits := sdktrace.NewSpanLimits()
	if os.Getenv("OTEL_SPAN_LINK_COUNT_LIMIT") == "" {
		limits.LinkCountLimit = -1 // a transaction has more orders than the 128 of the default
	}
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(res), sdktrace.WithRawSpanLimits(limits)}
	switch {
	case spans != nil:
		opts = append(opts, sdktrace.WithSyncer(spans))
	case export:
		kept := &recent{since: time.Now()}
		t.SpansOf = kept.of
		opts = append(opts, sdktrace.WithSpanProcessor(kept))
		if os.Getenv("OTEL_TRACES_EXPORTER") == "memory" {
			break
		}
		e, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return fmt.Errorf("telemetry: export traces: %w", err)
		}
		opts = append(opts, sdktrace.WithBatcher(e))
	default:
		// A span that is not sampled still has ids for the log.
		opts = append(opts, sdktrace.WithSampler(sdktrace.NeverSample()))
	}
	tp := sdktrace.NewTracerProvider(opts...)
	t.TracerProvider = tp
	t.shutdown = append(t.shutdown, tp.Shutdown)
	return nil
}

// measure sets up the meter provider and the handler for Prometheus.
func (t *Telemetry) measure(ctx context.Context, res *resource.Resource, export bool) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	page, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("telemetry: prometheus: %w", err)
	}
	opts := []sdkmetric.Option{
		sdkmetric.WithResource(res),
		sdkmetric.WithReader(page),
		sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: "http.server.*"}, sdkmetric.Stream{
			// The other labels of HTTP metrics have values that a client can choose: the Host header has a host and a port.
			AttributeFilter:                   attribute.NewAllowKeysFilter(semconv.HTTPRequestMethodKey, semconv.HTTPResponseStatusCodeKey, semconv.HTTPRouteKey),
			ExemplarReservoirProviderSelector: plainExemplars,
		})),
	}
	if export {
		e, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return fmt.Errorf("telemetry: export metrics: %w", err)
		}
		opts = append(opts, sdkmetric.WithReader(e))
	}
	mp := sdkmetric.NewMeterProvider(opts...)
	t.MeterProvider = mp
	t.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError, // one bad metric hides no other
		Registry:            registry,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true, // carries the trace ids of exemplars
	})
	t.shutdown = append(t.shutdown, mp.Shutdown)
	if export { // /metrics has those of the Prometheus client
		return runtime.Start(runtime.WithMeterProvider(mp))
	}
	return nil
}

// Logger returns a logger that exports what l logs, from level on, if logs are exported, and otherwise l.
func (t *Telemetry) Logger(l *slog.Logger, level slog.Leveler) *slog.Logger {
	if t.logs == nil {
		return l
	}
	exported := fromLevel{otelslog.NewHandler(scope, otelslog.WithLoggerProvider(t.logs)), level}
	return slog.New(slog.NewMultiHandler(l.Handler(), exported))
}

// plainExemplars returns reservoirs of exemplars without the attributes that a filter took from their measurement: Prometheus
// refuses an exemplar with more than 128 characters, and a client chooses the length of its host and user agent.
func plainExemplars(a sdkmetric.Aggregation) exemplar.ReservoirProvider {
	provide := sdkmetric.DefaultExemplarReservoirProviderSelector(a)
	return func(labels attribute.Set) exemplar.Reservoir { return plainReservoir{provide(labels)} }
}

type plainReservoir struct{ exemplar.Reservoir }

// Offer implements [exemplar.Reservoir].
func (r plainReservoir) Offer(ctx context.Context, t time.Time, v exemplar.Value, _ []attribute.KeyValue) {
	r.Reservoir.Offer(ctx, t, v, nil)
}

// Shutdown exports pending spans and metrics and stops. It blocks until the export
// is done or ctx ends; all signals share the deadline of ctx. Later spans and metrics
// are dropped.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(t.shutdown))
	for i, f := range t.shutdown {
		wg.Go(func() { errs[i] = f(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("telemetry: shutdown: %w", err)
	}
	return nil
}
