package telemetry

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// target is where one signal is exported to.
type target struct {
	export bool
	base   string // base URL; empty when the exporter finds its URL in the environment
}

// endpoint returns the target of signal, TRACES or METRICS. It has none if the environment switches telemetry or
// the signal off. The exporters read the same variables, but answer a malformed URL by exporting to localhost, so
// it is refused here.
func endpoint(base, signal string) (target, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return target{}, nil
	}
	const general = "OTEL_EXPORTER_OTLP_ENDPOINT"
	specific := "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT"
	raw, name := base, "endpoint"
	for _, v := range []string{specific, general} {
		if raw == "" {
			raw, name = strings.TrimSpace(os.Getenv(v)), v
		}
	}
	if raw == "" {
		return target{}, nil
	}
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return target{}, fmt.Errorf("telemetry: %s %q is not of the form http://HOST:PORT", name, raw)
	}
	return target{export: true, base: base}, nil
}

// spans returns the exporter for traces.
func (t target) spans(ctx context.Context) (sdktrace.SpanExporter, error) {
	var opts []otlptracehttp.Option
	if t.base != "" {
		opts = append(opts, otlptracehttp.WithEndpointURL(t.url("v1/traces")))
	}
	return otlptracehttp.New(ctx, opts...)
}

// metrics returns the exporter for metrics.
func (t target) metrics(ctx context.Context) (sdkmetric.Exporter, error) {
	var opts []otlpmetrichttp.Option
	if t.base != "" {
		opts = append(opts, otlpmetrichttp.WithEndpointURL(t.url("v1/metrics")))
	}
	return otlpmetrichttp.New(ctx, opts...)
}

// url returns the address of one signal below the base URL.
func (t target) url(path string) string {
	return strings.TrimSuffix(t.base, "/") + "/" + path
}
