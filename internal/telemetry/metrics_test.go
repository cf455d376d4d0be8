package telemetry_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/events"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/telemetry"
)

// scrape returns the page of metrics as Prometheus reads it: samples by name
// and labels.
func scrape(tb testing.TB, tel *telemetry.Telemetry) map[string]string {
	tb.Helper()
	w := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "/metrics", nil))
	page, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		tb.Errorf("status %d, %v: %s", w.Code, err, page)
	}
	samples := make(map[string]string)
	for line := range strings.Lines(string(page)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			samples[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return samples
}

// expect reports the samples that differ from want.
func expect(tb testing.TB, got, want map[string]string) {
	tb.Helper()
	for name, v := range want {
		if got[name] != v {
			tb.Errorf("%s = %q, want %q", name, got[name], v)
		}
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	o, err := telemetry.NewObserver(t.Context(), tel.MeterProvider)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		outcome string
		errs    []error
	}{
		{"accepted", []error{nil}},
		{"out_of_stock", []error{&stock.ShortageError{}}},
		{"over_limit", []error{&order.LimitError{}}},
		{"queued", []error{order.ErrQueued}},
		{"rejected", []error{&order.StateError{}}},
		{"replayed", []error{&idempotency.AnsweredError{}}},
		{"no_permit", []error{order.ErrConcurrencyLimit}},
		{"sku_limit", []error{order.ErrCrowded, errors.Join(order.ErrCrowded, order.ErrConcurrencyLimit)}},
		{"lock_service_limit", []error{order.ErrServiceCrowded}},
		{"adaptive_limit", []error{order.ErrOverloaded}},
		{"invalid", []error{order.ErrInvalid, order.ErrUnknownSKU, idempotency.ErrReused}},
		{"lock_timeout", []error{stock.ErrBusy, stock.ErrLockHeld, order.ErrStopping, context.DeadlineExceeded, errors.Join(stock.ErrBusy, dlock.ErrLost)}},
		{"unavailable", []error{stock.ErrUnavailable, stock.ErrStrategyUnavailable, stock.ErrUnknownStrategy}},
		{"unknown", []error{order.ErrOutcomeUnknown, errors.Join(stock.ErrBusy, context.Canceled, order.ErrOutcomeUnknown)}},
		{"cancelled", []error{context.Canceled}},
		{"error", []error{errors.New("something else")}},
	}
	name := func(outcome, strategy string) string {
		return fmt.Sprintf("shop_orders_total{outcome=%q,strategy=%q}", outcome, strategy)
	}
	want := make(map[string]string)
	for _, c := range cases {
		want[name(c.outcome, "none")] = "0"
	}
	expect(t, scrape(t, tel), want)
	o.Placed(t.Context(), "", nil)
	want[name("accepted", "none")] = "1"
	for _, c := range cases {
		want[name(c.outcome, "redis")] = "0"
	}
	for _, c := range cases {
		for _, err := range c.errs {
			if err != nil {
				err = fmt.Errorf("place: %w", err)
			}
			o.Placed(t.Context(), "redis", err)
		}
		want[name(c.outcome, "redis")] = fmt.Sprint(len(c.errs))
		expect(t, scrape(t, tel), want)
	}
}

func TestPermitsAreShown(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	l, err := permits.New(nil, permits.Config{Permits: 2})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(telemetry.WatchPermits(tel.MeterProvider, l.Stats), telemetry.WatchAdaptiveLimit(tel.MeterProvider, func() int { return 5 }), telemetry.WatchWaitlist(tel.MeterProvider, func() int { return 3 }))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Take(t.Context()); !errors.Is(err, permits.ErrConcurrencyLimit) {
		t.Fatal(err)
	}
	expect(t, scrape(t, tel), map[string]string{
		"shop_permits": "2", "shop_permits_in_use": "2", "shop_permits_instances": "1", "shop_permits_degraded": "0",
		"shop_permits_refused_total": "1", "shop_permits_store_calls_total": "0", "shop_waitlist_size": "3",
	})
}

func TestEventsAreShown(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	publisher := func() (published, dropped uint64) { return 9, 3 }
	feed := func() events.Stats {
		return events.Stats{Live: true, Listeners: 3, Received: 4, Missed: 5, Resets: 6, Refused: 7}
	}
	if err := telemetry.WatchEvents(tel.MeterProvider, publisher, feed); err != nil {
		t.Fatal(err)
	}
	expect(t, scrape(t, tel), map[string]string{
		"shop_events_live": "1", "shop_events_listeners": "3", "shop_events_published_total": "9", "shop_events_dropped_total": "3",
		"shop_events_received_total": "4", "shop_events_missed_total": "5", "shop_events_resets_total": "6", "shop_events_refused_total": "7",
	})
}

func TestStatesAreShown(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	away := errors.New("away")
	err := errors.Join(
		telemetry.WatchBreaker(tel.MeterProvider, "redis", func() error { return away }),
		telemetry.WatchBreaker(tel.MeterProvider, "etcd", func() error { return nil }),
		telemetry.WatchCluster(tel.MeterProvider, func() bool { return true }, func() int { return 3 }),
		telemetry.WatchRates(tel.MeterProvider, func() int64 { return 7 }),
		telemetry.WatchDatabase(tel.MeterProvider, func() map[string]sql.DBStats {
			return map[string]sql.DBStats{"sql": {MaxOpenConnections: 32, InUse: 2, Idle: 1, WaitCount: 4, WaitDuration: 1500 * time.Millisecond}, "sql audits": {}}
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	page := scrape(t, tel)
	expect(t, page, map[string]string{
		`shop_lock_breaker_open{backend="redis"}`: "1", `shop_lock_breaker_open{backend="etcd"}`: "0",
		"shop_cluster_leader": "1", "shop_cluster_members": "3", "shop_rate_limit_refused_total": "7",
		`db_client_connection_count{db_client_connection_pool_name="sql",db_client_connection_state="used"}`:        "2",
		`db_client_connection_count{db_client_connection_pool_name="sql",db_client_connection_state="idle"}`:        "1",
		`db_client_connection_count{db_client_connection_pool_name="sql audits",db_client_connection_state="idle"}`: "0",
		`db_client_connection_max{db_client_connection_pool_name="sql"}`:                                            "32",
		`shop_db_connection_waits_total{db_client_connection_pool_name="sql"}`:                                      "4",
		`shop_db_connection_wait_time_seconds_total{db_client_connection_pool_name="sql"}`:                          "1.5",
	})
	if has(page, `db_client_connection_max{db_client_connection_pool_name="sql audits"`) {
		t.Error("a pool without a limit has one")
	}
}

func TestRetriesAreCounted(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	o, err := telemetry.NewObserver(t.Context(), tel.MeterProvider)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		`shop_order_retries_total{reason="fenced"}`:   "0",
		`shop_order_retries_total{reason="lost"}`:     "0",
		`shop_order_retries_total{reason="conflict"}`: "0",
		`shop_fence_rejections_total`:                 "0",
	}
	expect(t, scrape(t, tel), want)
	for reason, n := range map[error]int{dlock.ErrFenced: 3, dlock.ErrLost: 2, stock.ErrConflict: 1} {
		for range n {
			o.Retried(t.Context(), reason)
		}
	}
	expect(t, scrape(t, tel), map[string]string{
		`shop_order_retries_total{reason="fenced"}`:   "3",
		`shop_order_retries_total{reason="lost"}`:     "2",
		`shop_order_retries_total{reason="conflict"}`: "1",
		`shop_fence_rejections_total`:                 "3",
	})
}

func TestServiceReportsMetrics(t *testing.T) {
	tel := setup(t, telemetry.Config{Version: "v1", Instance: "shop-1"})
	orders, levels := shop(t, tel)
	if _, _, err := levels.Create(t.Context(), stock.Level{SKU: "mug", Strategy: "redis", OnHand: 1}); err != nil {
		t.Fatal(err)
	}
	all := func(ctx context.Context) ([]stock.Audit, error) { return levels.Audit(ctx, "") }
	watchOversold(t, tel.MeterProvider, all)
	mug := []order.Item{{SKU: "mug", Quantity: 1}}
	for range 2 {
		if _, err := orders.Place(t.Context(), order.Purchase{Customer: "c1", Items: mug}); err != nil && !errors.As(err, new(*stock.ShortageError)) {
			t.Fatal(err)
		}
	}
	got := scrape(t, tel)
	for end := time.Now().Add(time.Minute); !has(got, "shop_oversold_units") && time.Now().Before(end); got = scrape(t, tel) {
		time.Sleep(time.Millisecond)
	}
	expect(t, got, map[string]string{
		`shop_orders_total{outcome="accepted",strategy="redis"}`:            "1",
		`shop_orders_total{outcome="out_of_stock",strategy="redis"}`:        "1",
		`shop_order_batch_size_count`:                                       "2",
		`shop_order_batch_wait_seconds_count`:                               "2",
		`shop_oversold_units{strategy="redis"}`:                             "0",
		`shop_audit_failures_total`:                                         "0",
		`shop_lock_wait_seconds_count{backend="memory",outcome="acquired"}`: "2",
		`shop_lock_hold_seconds_count{backend="memory",outcome="released"}`: "2",
	})
	for _, prefix := range []string{
		"go_goroutines", "process_start_time_seconds",
		`target_info{host_name=`,
	} {
		if !has(got, prefix) {
			t.Errorf("no %s", prefix)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "shop_") && strings.Contains(name, "mug") {
			t.Errorf("a label shows a SKU: %s", name)
		}
	}
}

func has(samples map[string]string, prefix string) bool {
	for name := range samples {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// An exemplar has its trace, whatever the client sends.
func TestExemplarsOfLongRequests(t *testing.T) {
	tel := setup(t, telemetry.Config{Spans: keep{tracetest.NewInMemoryExporter()}})
	h, err := tel.MeterProvider.Meter("http").Float64Histogram("http.server.request.duration", metric.WithUnit("s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tel.TracerProvider.Tracer("test").Start(t.Context(), "request")
	defer span.End()
	h.Record(ctx, 0.1, metric.WithAttributes(attribute.String("user_agent.original", strings.Repeat("x", 200))))
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	tel.Metrics.ServeHTTP(w, r)
	if want := `trace_id="` + span.SpanContext().TraceID().String(); !strings.Contains(w.Body.String(), want) {
		t.Errorf("no exemplar in:\n%s", w.Body)
	}
}

func TestHostHeaderIsNoLabel(t *testing.T) {
	tel := setup(t, telemetry.Config{})
	h, err := tel.MeterProvider.Meter("http").Float64Histogram("http.server.request.duration", metric.WithUnit("s"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		h.Record(t.Context(), 0.1, metric.WithAttributes(
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/api/v1/orders"),
			attribute.Int("http.response.status_code", 200),
			attribute.String("server.address", fmt.Sprint("host-", i)), attribute.Int("server.port", i)))
	}
	expect(t, scrape(t, tel), map[string]string{
		`http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/api/v1/orders"}`: "100",
	})
}
