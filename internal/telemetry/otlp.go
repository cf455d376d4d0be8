package telemetry

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// exports reports whether the environment says where signal, TRACES, METRICS or LOGS, is exported to, and does not switch
// telemetry or the signal off. The exporters read the same variables. Without any of them, and for a malformed endpoint, they export to
// localhost, which is prevented here. The exporter prometheus would open a listener; an instance has /metrics.
func exports(signal string) (bool, error) {
	exporter := os.Getenv("OTEL_" + signal + "_EXPORTER")
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" || exporter == "prometheus" {
		return false, nil
	}
	if memory := exporter == "memory" && signal == "TRACES"; !memory && !slices.Contains([]string{"", "otlp", "console"}, exporter) {
		return false, fmt.Errorf("telemetry: OTEL_%s_EXPORTER %q is not otlp, console or none, nor memory for traces", signal, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		raw := strings.TrimSpace(os.Getenv(name))
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return false, fmt.Errorf("telemetry: %s %q is not of the form http://HOST:PORT", name, raw)
		}
		return true, nil
	}
	return exporter != "", nil
}
