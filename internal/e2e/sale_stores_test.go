package e2e_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"example.com/shop/internal/platform/testbed/testbedtest"
)

// One POST is one trace, from the request to the lock and the statements, and
// reaches an OTLP receiver when one is configured. The expiry of the order has a trace
// of its own, which links to it.
func TestOnePostIsOneTrace(t *testing.T) {
	var (
		mu       sync.Mutex
		requests []*collector.ExportTraceServiceRequest
	)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || !strings.HasSuffix(req.URL.Path, "/v1/traces") {
			return
		}
		m := new(collector.ExportTraceServiceRequest)
		if err := proto.Unmarshal(body, m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, m)
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)

	r := start(t, "--database", sqliteURL(t), "--redis", testbedtest.Redis(t), "--order-ttl", "1s")
	r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/a", `{"on_hand":1,"strategy":"redis"}`)
	trace, tries := "", 0 // of the request that was not refused for now
	stalls := detectStalls(t)
	a := insist(func() answer {
		tries++
		trace = fmt.Sprintf("0af7651916cd43dd8448eb211c8031%02x", tries%256)
		return purchase(t.Context(), http.DefaultClient, r.url, "a", "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	})
	if a.status != http.StatusCreated {
		t.Fatal(a)
	}
	r.eventually(t)
	r.stop() // flushes the spans
	r.stopped(t)
	mu.Lock()
	defer mu.Unlock()
	seen := make(map[string]int)
	for _, m := range requests {
		for _, rs := range m.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					for _, l := range s.Links {
						if hex.EncodeToString(l.TraceId) == trace {
							seen["link from "+s.Name]++
						}
					}
					if hex.EncodeToString(s.TraceId) == trace {
						seen[s.Name]++
					}
				}
			}
		}
	}
	for _, name := range []string{"POST /api/v1/orders", "order.place", "stock.reserve", "lock.acquire", "lock.hold", "link from timers order.expire"} {
		if again := seen[name] > 1 && stalls.total() > 0; seen[name] != 1 && !again { // under another lease
			t.Errorf("%d spans %q in the trace, want 1; it has %v", seen[name], name, seen)
		}
	}
}
