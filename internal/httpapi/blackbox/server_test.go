package blackbox_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	var down error
	s := newHandler(t, httpapi.Config{Ready: func(context.Context) error { return down }})
	get := func(path string) int {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		status, header, body := s.do(r)
		s.conforms(t, r, status, header, body)
		return status
	}
	if live, ready := get("/livez"), get("/readyz"); live != 200 || ready != 200 {
		t.Errorf("healthy: livez %d, readyz %d", live, ready)
	}
	down = errors.New("dial tcp 10.0.0.7:3306: connection refused")
	if live := get("/livez"); live != 200 {
		t.Errorf("livez %d while a store is down", live)
	}
	wantType(t, s.must(t, 503, http.MethodGet, "/readyz", ""), "store-unavailable")
	down = nil
	if ready := get("/readyz"); ready != 200 {
		t.Errorf("readyz %d when the store has recovered", ready)
	}
}

// TestReadyIsBounded has a store that stops to answer. A balancer that receives no response considers the instance
// dead.
func TestReadyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalls atomic.Bool
		var asked atomic.Int64
		s := newHandler(t, httpapi.Config{Ready: func(ctx context.Context) error {
			asked.Add(1)
			if stalls.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}})
		start := time.Now()
		want := func(status int, at time.Duration) {
			t.Helper()
			got, _, _ := s.do(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			if after := time.Since(start); got != status || after != at {
				t.Errorf("%d after %v, want %d after %v", got, after, status, at)
			}
		}
		want(200, 0)
		stalls.Store(true)
		for i := range time.Duration(3) {
			want(200, (i+1)*250*time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // the question ends at 1 s
		want(503, time.Second)
		want(503, 1250*time.Millisecond)
		stalls.Store(false)
		time.Sleep(time.Second)
		want(200, 2250*time.Millisecond)
		if n := asked.Load(); n != 4 {
			t.Errorf("the store was asked %d times, want 4: one question at a time", n)
		}
	})
}

// TestSlowFirstAnswerIsNoFailure has a store whose first answer takes longer than /readyz waits. The instance is not
// ready only if that answer, or a later one, is a failure.
func TestSlowFirstAnswerIsNoFailure(t *testing.T) {
	down := errors.New("dial tcp 10.0.0.7:3306: connection refused")
	for name, c := range map[string]struct {
		takes time.Duration
		err   error
		then  int // status after the first answer, while the second one takes as long
	}{
		"success":   {400 * time.Millisecond, nil, 200},
		"failure":   {400 * time.Millisecond, down, 503},
		"no answer": {time.Hour, nil, 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHandler(t, httpapi.Config{Ready: func(ctx context.Context) error {
					select {
					case <-time.After(c.takes):
						return c.err
					case <-ctx.Done():
						return ctx.Err()
					}
				}})
				for _, want := range []int{200, c.then} {
					if got, _, _ := s.do(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)); got != want {
						t.Errorf("readyz %d, want %d", got, want)
					}
					time.Sleep(time.Second) // the question ends
				}
			})
		})
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	var drain atomic.Bool
	s := newHandler(t, httpapi.Config{Orders: failing(order.ErrNotFound), Drain: &drain})
	paths := []string{"/livez", "/readyz", "/api/v1/openapi.yaml", "/api/v1/orders/" + someOrder, "/nothing"}
	for _, draining := range []bool{false, true} {
		for _, path := range paths {
			status, header, _ := s.do(httptest.NewRequest(http.MethodGet, path, nil))
			if got := header.Get("Connection") == "close"; got != draining {
				t.Errorf("%s, draining %v: Connection %q", path, draining, header.Get("Connection"))
			}
			if (status == http.StatusServiceUnavailable) != (draining && path == "/readyz") {
				t.Errorf("%s, draining %v: %d", path, draining, status)
			}
		}
		drain.Store(true)
	}
	wantType(t, s.must(t, 503, http.MethodGet, "/readyz", ""), "draining")
}

// TestDrainReachesRunningRequests starts the drain while a request is inside.
func TestDrainReachesRunningRequests(t *testing.T) {
	t.Parallel()
	var drain atomic.Bool
	s := newHandler(t, httpapi.Config{Drain: &drain, Orders: fake{func(context.Context) (order.Order, error) {
		drain.Store(true)
		return order.Order{}, order.ErrNotFound
	}}})
	_, header, _ := s.do(httptest.NewRequest(http.MethodGet, "/api/v1/orders/"+someOrder, nil))
	if got := header.Get("Connection"); got != "close" {
		t.Errorf("Connection is %q", got)
	}
}

// TestMetricsAreForAdmins who may ask for them by any name of the host.
func TestMetricsAreForAdmins(t *testing.T) {
	t.Parallel()
	c := httpapi.Config{Timers: brokenTimers{}, Instance: "i1", Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "shop_oversold_units 0\n")
	})}
	h, err := httpapi.NewAdmin(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*shop{{Handler: h}, newHandler(t, c)} {
		status, header, body := s.do(httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if s.spec != nil {
			if status != http.StatusNotFound {
				t.Errorf("metrics are public: %d %s", status, body)
			}
		} else if status != 200 || string(body) != "shop_oversold_units 0\n" || header.Get("X-Instance-Id") != "i1" {
			t.Errorf("%d %v %s", status, header, body)
		}
	}
}

// TestForwardedForIsNotTrusted reads the client's address where telemetry puts
// it: whoever asks cannot choose it.
func TestForwardedForIsNotTrusted(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	s := newHandler(t, httpapi.Config{
		Orders:         failing(stock.ErrBusy),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
	})
	seen := len(recorder.Ended())
	r := httptest.NewRequest(http.MethodGet, "/api/v1/orders/"+someOrder, nil)
	r.RemoteAddr = "192.0.2.7:1234"
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "CF-Connecting-IP", "X-Appengine-Remote-Addr"} {
		r.Header.Set(name, "203.0.113.66")
	}
	s.do(r)
	spans := recorder.Ended()[seen:]
	if len(spans) != 1 {
		t.Fatalf("%d spans", len(spans))
	}
	if got := spans[0].Name(); got != "GET /api/v1/orders/:id" {
		t.Errorf("span %q", got)
	}
	var address string
	for _, a := range spans[0].Attributes() {
		if strings.Contains(a.Value.String(), "203.0.113.66") {
			t.Errorf("%s is %s", a.Key, a.Value.String())
		}
		if a.Key == attribute.Key("client.address") {
			address = a.Value.AsString()
		}
	}
	if address != "192.0.2.7" {
		t.Errorf("client.address is %q", address)
	}
}

// A client learns the trace of its request, so that its complaint leads to the trace and the log.
func TestAnswersNameTheirTrace(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: failing(stock.ErrBusy), TracerProvider: sdktrace.NewTracerProvider()})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	r := httptest.NewRequest(http.MethodGet, "/api/v1/orders/"+someOrder, nil)
	r.Header.Set("traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	status, header, body := s.do(r)
	s.conforms(t, r, status, header, body)
	if got := header.Get("traceresponse"); !strings.HasPrefix(got, "00-"+trace+"-") || !strings.HasSuffix(got, "-01") || strings.Contains(got, "b7ad6b7169203331") {
		t.Errorf("traceresponse: %s", got)
	}
	if want := `"trace_id":"` + trace + `"`; !strings.Contains(string(body), want) {
		t.Errorf("want %s in %s", want, body)
	}
	conflict := newHandler(t, httpapi.Config{Orders: failing(&stock.ShortageError{}), TracerProvider: sdktrace.NewTracerProvider()})
	if status, header, body := conflict.do(r); status != http.StatusConflict || header.Get("traceresponse") == "" || strings.Contains(string(body), "trace_id") {
		t.Errorf("a conflict, which is the same for each retry: %d %s", status, body)
	}
}

func TestProbesLeaveNoSpans(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	s := newHandler(t, httpapi.Config{
		Metrics:        http.NotFoundHandler(),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
	})
	seen := len(recorder.Ended())
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		s.do(httptest.NewRequest(http.MethodGet, path, nil))
	}
	if got := len(recorder.Ended()) - seen; got != 0 {
		t.Errorf("%d spans", got)
	}
}

// TestServer uses a real socket, where the limits of the server are.
func TestServer(t *testing.T) {
	t.Parallel()
	server := httpapi.NewServer(newShop(t), slog.New(slog.DiscardHandler))
	for name, d := range map[string][2]time.Duration{
		"ReadHeaderTimeout": {server.ReadHeaderTimeout, 5 * time.Second}, "ReadTimeout": {server.ReadTimeout, 10 * time.Second},
		"WriteTimeout": {server.WriteTimeout, 15 * time.Second}, "IdleTimeout": {server.IdleTimeout, 60 * time.Second},
	} {
		if d[0] != d[1] {
			t.Errorf("%s is %v, want %v", name, d[0], d[1])
		}
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-stopped; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: new(http.Transport)}
	t.Cleanup(client.CloseIdleConnections)
	for size, want := range map[int]int{8 << 10: http.StatusOK, 64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("x", size))
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%d bytes of header: %d, want %d", size, answer.StatusCode, want)
		}
	}
}
