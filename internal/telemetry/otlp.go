package telemetry

import (
	"fmt"
	"net/url"
	"os"
	"strings"
)

// exports reports whether the environment says where signal, TRACES or METRICS, is exported to, and does not switch
// telemetry or the signal off. The exporters read the same variables, but answer a malformed URL by exporting to
// localhost, so it is refused here.
func exports(signal string) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_"+signal+"_EXPORTER") == "none" {
		return false, nil
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
	return false, nil
}
