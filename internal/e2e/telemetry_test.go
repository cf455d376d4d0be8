package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"gopkg.in/yaml.v3"

	"example.com/shop/internal/platform/testbed"
	"example.com/shop/internal/platform/testbed/testbedtest"
)

// exported has what an OTLP receiver got: the attributes of each span and metric, by its line in the schema.
type exported struct {
	mu     sync.Mutex
	spans  map[string]map[string]bool
	metric map[string]map[string]bool
}

// receiveOTLP receives until the test ends. nameOf names the line of a span.
func receiveOTLP(t *testing.T, nameOf func(span string) string) (url string, all *exported) {
	t.Helper()
	all = &exported{spans: make(map[string]map[string]bool), metric: make(map[string]map[string]bool)}
	note := func(to map[string]map[string]bool, name string, attributes []*common.KeyValue) {
		if to[name] == nil {
			to[name] = make(map[string]bool)
		}
		for _, a := range attributes {
			to[name][a.GetKey()] = true
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil { // an exporter that was cut off sends it again
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		traces, metrics := new(tracecollector.ExportTraceServiceRequest), new(metricscollector.ExportMetricsServiceRequest)
		switch path.Base(r.URL.Path) {
		case "traces":
			err = proto.Unmarshal(body, traces)
		case "metrics":
			err = proto.Unmarshal(body, metrics)
		}
		if err != nil {
			t.Error(err)
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, from := range traces.GetResourceSpans() {
			for _, scope := range from.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					note(all.spans, nameOf(s.GetName()), s.GetAttributes())
					if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR && !saysWhy(s.GetAttributes()) {
						t.Errorf("%s failed without an error.type: %s", s.GetName(), s.GetStatus().GetMessage())
					}
				}
			}
		}
		for _, from := range metrics.GetResourceMetrics() {
			for _, scope := range from.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					for _, labels := range labelsOf(m) {
						note(all.metric, m.GetName()+" "+m.GetUnit(), labels)
					}
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, all
}

// saysWhy reports whether a span that failed has the type of its error. That of a request is its status.
func saysWhy(attributes []*common.KeyValue) bool {
	return slices.ContainsFunc(attributes, func(a *common.KeyValue) bool {
		return a.GetKey() == "error.type" || a.GetKey() == "http.response.status_code"
	})
}

// labelsOf returns the attributes of each point.
func labelsOf(m *metricspb.Metric) (all [][]*common.KeyValue) {
	for _, p := range slices.Concat(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()) {
		all = append(all, p.GetAttributes())
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		all = append(all, p.GetAttributes())
	}
	for _, p := range m.GetExponentialHistogram().GetDataPoints() {
		all = append(all, p.GetAttributes())
	}
	return all
}

// telemetrySchema is internal/telemetry/schema.yaml.
type telemetrySchema struct {
	Spans []struct {
		Name, Match          string
		Attributes, Optional []string
	}
	Metrics []struct {
		Labels []string
		List   []struct {
			Name, Unit string
			Labels     []string
		}
	}
}

// lines returns the attributes of each line of the schema, and which line a span has.
func (s telemetrySchema) lines() (spans, metrics map[string][]string, optional []string, nameOf func(string) string) {
	spans, metrics = make(map[string][]string), make(map[string][]string)
	for _, x := range s.Spans {
		spans[x.Name] = slices.Concat(x.Attributes, x.Optional)
		for _, a := range x.Optional {
			optional = append(optional, x.Name+" "+a)
		}
	}
	for _, g := range s.Metrics {
		for _, m := range g.List {
			metrics[m.Name+" "+m.Unit] = slices.Concat(m.Labels, g.Labels)
		}
	}
	return spans, metrics, optional, func(span string) string {
		for _, x := range s.Spans {
			if x.Name == span || x.Match != "" && regexp.MustCompile("^("+x.Match+")$").MatchString(span) {
				return x.Name
			}
		}
		return span
	}
}

// A short sale, in which Redis stops for a moment and a receiver refuses webhooks, exports what the schema lists, and nothing else: spans, metrics with their units, and
// the attributes of both. Spans that failed say why.
func TestSaleExportsItsSchema(t *testing.T) {
	t.Parallel()
	var schema telemetrySchema
	text, err := os.ReadFile("../telemetry/schema.yaml")
	if err == nil {
		err = yaml.NewDecoder(bytes.NewReader(text)).Decode(&schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	spans, metrics, optional, nameOf := schema.lines()
	url, got := receiveOTLP(t, nameOf)
	sellWithFaults(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRIC_EXPORT_INTERVAL": "500"})
	got.mu.Lock()
	defer got.mu.Unlock()
	compareSchema(t, "span", spans, got.spans, optional...)
	compareSchema(t, "metric", metrics, got.metric)
}

func compareSchema(t *testing.T, what string, want map[string][]string, got map[string]map[string]bool, optional ...string) {
	t.Helper()
	for name, attributes := range got {
		listed, ok := want[name]
		if !ok {
			t.Errorf("the schema has no %s %q with %q", what, name, slices.Sorted(maps.Keys(attributes)))
			continue
		}
		for a := range attributes {
			if !slices.Contains(listed, a) {
				t.Errorf("%s %s: the schema has no attribute %s", what, name, a)
			}
		}
		for _, a := range listed {
			if !attributes[a] && !slices.Contains(optional, name+" "+a) {
				t.Errorf("%s %s never had the attribute %s", what, name, a)
			}
		}
	}
	for name := range want {
		if got[name] == nil {
			t.Errorf("the %s %s never occurred", what, name)
		}
	}
}

// sellWithFaults has two instances sell: accepted, batched, queued and refused orders, expiries, webhooks that are refused, and an outage of Redis.
func sellWithFaults(t *testing.T, env map[string]string) {
	t.Helper()
	redis := testbedtest.StartRedis(t, testbed.RedisConfig{})
	s := stage{database: testbedtest.Database(t), redis: redis.URL()}
	refused := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		select {
		case refused <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(receiver.Close)
	var all []*instance
	for i := range 2 {
		r := launchIn(t, env, program, "--instance", fmt.Sprint("shop-", i+1), "--database", s.database, "--redis", s.redis, "--order-ttl", "1s", "--customer-rate", "1000",
			"--webhook", receiver.URL, "--webhook-secret", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
		r.listens(t)
		all = append(all, r)
		if i > 0 {
			continue
		}
		for sku, body := range map[string]string{ // so that the other instance has something to audit when it starts
			"a": `{"on_hand":1,"strategy":"redis"}`, "b": `{"on_hand":1000,"strategy":"redis-cohort"}`, "c": `{"on_hand":1000,"strategy":"conditional"}`,
		} {
			r.want(t, http.StatusCreated, "PUT", "/api/v1/skus/"+sku, body)
		}
	}
	a, b := all[0], all[1]
	order := func(sku string, n int) string {
		return fmt.Sprintf(`{"customer_id":"c%d","items":[{"sku":%q,"quantity":1}]}`, n, sku)
	}
	a.eventually(t) // of a, of which the second waits until the first has expired
	b.eventually(t)
	var sale sync.WaitGroup
	for n := range 20 {
		sale.Go(func() { all[n%2].send(t, "POST", "/api/v1/orders", order("b", n)) })
		sale.Go(func() { all[n%2].send(t, "POST", "/api/v1/orders", order("c", n)) })
	}
	sale.Wait()
	locks := s.locks(t)
	lease := hold(t, locks, "sku:b")
	queued := ask(t.Context(), http.DefaultClient, "POST", a.url+"/api/v1/orders", order("b", 100), "Prefer", "respond-async, wait=0")
	free(t, lease)
	if queued.status != http.StatusAccepted {
		t.Fatalf("an order while the lock is held: %v", queued)
	}
	testbedtest.Eventually(t, "the queued order leaves the queue", func() bool {
		_, body := a.send(t, "GET", queued.header.Get("Location"), "")
		return !strings.Contains(body, "QUEUED") && strings.Contains(body, "status")
	})
	testbedtest.Eventually(t, "a webhook is refused", func() bool { return len(refused) > 0 })
	if err := redis.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	testbedtest.Eventually(t, "the breaker is open, and timers fail", func() bool {
		a.send(t, "POST", "/api/v1/orders", order("b", 200))
		_, page := (&instance{url: a.admin(t)}).send(t, "GET", "/metrics", "")
		return strings.Contains(page, `shop_lock_breaker_open{backend="redis"} 1`) && strings.Contains(page, "\nshop_timers_failures_total{")
	})
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.want(t, http.StatusCreated, "POST", "/api/v1/orders", order("b", 300))
	for _, r := range all {
		r.stop()
	}
	for _, r := range all {
		r.stopped(t)
	}
}
