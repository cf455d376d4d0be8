package blackbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/httpapi"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

var someLevel = stock.Level{SKU: "s1", Strategy: "naive", OnHand: 5, Version: 2}

const someOrder = "0198c5a2-7d10-7c3e-9b1f-3f2a6f1f9d01"

// operations is a good request for every operation that reaches the domain.
var operations = []struct{ method, path, body string }{
	{http.MethodGet, "/api/v1/skus", ""},
	{http.MethodGet, "/api/v1/skus/s1", ""},
	{http.MethodPut, "/api/v1/skus/s1", `{"on_hand":1,"strategy":"naive"}`},
	{http.MethodPost, "/api/v1/skus/s1/restock", `{"quantity":1}`},
	{http.MethodPost, "/api/v1/orders", basket},
	{http.MethodGet, "/api/v1/orders/" + someOrder, ""},
	{http.MethodPost, "/api/v1/orders/" + someOrder + "/pay", `{"payment_id":"p1"}`},
	{http.MethodPost, "/api/v1/orders/" + someOrder + "/cancel", ""},
	{http.MethodPost, "/api/v1/orders/" + someOrder + "/extend", `{"by_seconds":60}`},
	{http.MethodGet, "/api/v1/audit", ""},
}

// TestOutages answers what stores and locks do when they fail. The texts of the
// causes name addresses and statements, and must not get through.
func TestOutages(t *testing.T) {
	t.Parallel()
	cause := errors.New("sql: dial tcp 10.0.0.7:3306: SELECT secret FROM skus")
	for _, c := range []struct {
		err    error
		status int
		slug   string
	}{
		{fmt.Errorf("%w: %w", stock.ErrUnavailable, cause), 503, "store-unavailable"},
		{fmt.Errorf("%w: %w", stock.ErrBusy, cause), 503, "lock-timeout"},
		{fmt.Errorf("%w: %w", stock.ErrBusy, context.DeadlineExceeded), 503, "lock-timeout"},
		{fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, cause), 503, "outcome-unknown"},
		{errors.Join(stock.ErrBusy, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		// An unknown outcome comes first, whatever the other error says.
		{fmt.Errorf("%w: %w", order.ErrOutcomeUnknown, order.ErrStopping), 503, "outcome-unknown"},
		{errors.Join(permits.ErrClosed, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(order.ErrConcurrencyLimit, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(idempotency.ErrInFlight, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(&stock.ShortageError{}, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(&order.StateError{}, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(&order.LimitError{}, order.ErrOutcomeUnknown), 503, "outcome-unknown"},
		{errors.Join(cluster.ErrReadOnly, cluster.ErrUncertain), 503, "outcome-unknown"},
		{fmt.Errorf("%w: %w", stock.ErrUnavailable, dlock.ErrUncertain), 503, "store-unavailable"},
		{errors.Join(context.DeadlineExceeded, cause), 503, "lock-timeout"},
		{context.Canceled, 503, "lock-timeout"},
		{cause, 500, "internal"},
		{dlock.ErrHeld, 500, "internal"},
	} {
		s := newHandler(t, httpapi.Config{Orders: failing(c.err), Stock: failing(c.err)})
		for _, op := range operations {
			if c.slug == "outcome-unknown" && op.method == http.MethodGet {
				continue // what changes nothing cannot leave open whether it did
			}
			p := s.must(t, c.status, op.method, op.path, op.body)
			if wantType(t, p, c.slug); strings.Contains(fmt.Sprint(p), "secret") || strings.Contains(fmt.Sprint(p), "10.0.0.7") {
				t.Errorf("%s %s gives the cause away: %v", op.method, op.path, p)
			}
			if got := p["order_id"]; c.slug == "outcome-unknown" && strings.Contains(op.path, someOrder) && got != someOrder {
				t.Errorf("%s %s: the order in doubt is %v", op.method, op.path, got)
			}
		}
	}
}

func TestUnknownOutcomeNamesTheNewOrder(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: fake{func(context.Context) (order.Order, error) {
		return order.Order{ID: someOrder}, order.ErrOutcomeUnknown
	}}})
	p := s.must(t, 503, http.MethodPost, "/api/v1/orders", basket)
	if wantType(t, p, "outcome-unknown"); p["order_id"] != someOrder {
		t.Errorf("the order in doubt is %v", p["order_id"])
	}
}

// TestDeadline has a domain that does nothing until its context ends: a second before the time limit, or a tenth.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			hanging := fake{func(ctx context.Context) (order.Order, error) {
				<-ctx.Done()
				return order.Order{}, context.Cause(ctx)
			}}
			s := newHandler(t, httpapi.Config{Orders: hanging, Stock: hanging, RequestTimeout: limit})
			want := 9 * time.Second
			if limit != 0 {
				want = limit - limit/10
			}
			for _, op := range operations {
				start := time.Now()
				wantType(t, s.must(t, 503, op.method, op.path, op.body), "lock-timeout")
				if got := time.Since(start); got != want {
					t.Errorf("%s %s took %v, want %v", op.method, op.path, got, want)
				}
			}
		})
	}
}

// TestContextOutlivesTheRequest catches a gin.Context that reaches the domain. gin reuses it for the next request,
// while detached work of the previous one still reads its values.
func TestContextOutlivesTheRequest(t *testing.T) {
	t.Parallel()
	seen := 0
	spy := fake{func(ctx context.Context) (order.Order, error) {
		seen++
		if ctx.Value(gin.ContextKey) != nil {
			t.Error("the domain gets a gin.Context")
		}
		if ctx.Value(http.ServerContextKey) == nil {
			t.Error("the domain gets a context that is not the request's")
		}
		return order.Order{}, stock.ErrBusy
	}}
	s := newHandler(t, httpapi.Config{Orders: spy, Stock: spy})
	for _, op := range operations {
		r := httptest.NewRequest(op.method, op.path, strings.NewReader(op.body))
		r.Header.Set("Content-Type", jsonType)
		s.do(r.WithContext(context.WithValue(t.Context(), http.ServerContextKey, new(http.Server))))
	}
	if seen != len(operations) {
		t.Errorf("%d of %d operations reached the domain", seen, len(operations))
	}
}

// TestPanic neither gives the client the cause, nor the log what the request carried.
func TestPanic(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newHandler(t, httpapi.Config{
		Orders: fake{func(context.Context) (order.Order, error) { panic("a bug") }},
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	r := httptest.NewRequest(http.MethodPost, "/api/v1/orders", strings.NewReader(basket))
	secrets := map[string]string{
		"X-API-Key": "key-0815", "Authorization": "Bearer token-4711", "Cookie": "session=cookie-42", "Content-Type": jsonType,
	}
	for name, value := range secrets {
		r.Header.Set(name, value)
	}
	status, _, p := s.send(t, r)
	if wantType(t, p, "internal"); status != http.StatusInternalServerError || strings.Contains(fmt.Sprint(p), "a bug") {
		t.Errorf("%d %v", status, p)
	}
	text := log.String()
	if !strings.Contains(text, "a bug") || !strings.Contains(text, "faults_test.go") {
		t.Errorf("the log does not name the cause and its place: %s", text)
	}
	for _, secret := range []string{"key-0815", "token-4711", "cookie-42"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log contains %s", secret)
		}
	}
	s.must(t, 404, http.MethodGet, "/nothing", "") // the handler still works
}

func TestAbortHandlerPanicIsRethrown(t *testing.T) {
	t.Parallel()
	s := newHandler(t, httpapi.Config{Orders: fake{func(context.Context) (order.Order, error) { panic(http.ErrAbortHandler) }}})
	defer func() {
		if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
			t.Errorf("recovered %v", got)
		}
	}()
	s.do(httptest.NewRequest(http.MethodGet, "/api/v1/orders/"+someOrder, nil))
}

// TestUnknownErrorsAreLogged because their answer says nothing.
func TestUnknownErrorsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newHandler(t, httpapi.Config{
		Stock:  failing(errors.New("disk on fire")),
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	s.must(t, 500, http.MethodGet, "/api/v1/skus/s1", "")
	if text := log.String(); !strings.Contains(text, "disk on fire") || !strings.Contains(text, `"route":"/api/v1/skus/:sku"`) {
		t.Errorf("log: %s", text)
	}
}

// TestOutagesAreLoggedSparingly: while a store is unavailable every request fails, and so does every question of a balancer.
func TestOutagesAreLoggedSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newHandler(t, httpapi.Config{
			Orders: failing(stock.ErrUnavailable),
			Ready:  func(context.Context) error { return stock.ErrUnavailable },
			Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		})
		for range 1000 {
			s.must(t, 503, http.MethodPost, orders, basket)
			s.must(t, 503, http.MethodGet, "/readyz", "")
			time.Sleep(20 * time.Millisecond) // 20 seconds in all
		}
		if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), `"similar_since":999`) {
			t.Errorf("%d lines of 2,000 requests:\n%.1000s", n, log.String())
		}
		log.Reset()
		time.Sleep(time.Minute)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			s.do(httptest.NewRequestWithContext(gone, http.MethodGet, "/readyz", nil))
		}
		if log.Len() > 0 {
			t.Errorf("a client that has gone is logged:\n%s", log.String())
		}
	})
}
