package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/events"
	"example.com/shop/internal/stock"
)

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml openapi.yaml

// Config configures a handler. Orders and Stock are required by [New].
type Config struct {
	Orders Orders
	Stock  Stock

	// Strategies are the strategies that the API lists. Default: none.
	Strategies *stock.Strategies

	// Identity authenticates callers. Default: authentication is disabled, and every caller may do everything.
	Identity Identity

	// LocalOnly refuses requests for other hosts than localhost and loopback addresses. Set it for a listener on
	// a loopback address without authentication. [NewAdmin] always sets it.
	LocalOnly bool

	// Rates limits the orders and extensions per second of a customer. Default: no limit.
	Rates Rates

	// Permits returns the limit of orders in flight, for the RateLimit headers of a refused order and the load of the
	// instance. Default: no limit.
	Permits func() permits.Stats

	// Waiting returns how many orders wait for units at this instance. Default: none waits.
	Waiting func() int

	// Timers are the timers that NewAdmin serves. It is required there.
	Timers Timers

	// Cluster has the other instances and the settings. Default: none.
	Cluster Cluster

	// Events is the source of event streams. Default: subscriptions are refused.
	Events *events.Feed

	// Heartbeat is the interval of heartbeats on an idle stream; default 10
	// seconds, because proxies often close idle connections after 30 seconds.
	Heartbeat time.Duration

	// Trace returns what this instance has recorded of an order. Default: spans are not recorded.
	Trace func(order string) OrderTrace

	// Instance is the name of this process in every response.
	Instance string

	// Ready returns why the instance is not ready, or nil; the response has the part of a [NotReadyError]. /readyz calls it with a time limit of
	// one second, and answers within 250 ms: by the previous call, if this one takes longer. Until
	// the first call has ended the instance is ready, so connect the stores before New. Default: always ready.
	Ready func(ctx context.Context) error

	// Drain is true from when the instance begins to shut down. Then /readyz responds with 503, so that the balancer sends no
	// more requests. Every response closes its connection, so that clients connect to other instances. Requests are still
	// served. Default: never.
	Drain *atomic.Bool

	// Metrics is served as /metrics by the handler of NewAdmin. Default: no such path.
	Metrics http.Handler

	// Logger logs failures, and at debug level every request. Default:
	// silent.
	Logger *slog.Logger

	// TracerProvider, MeterProvider and Propagator measure requests, except
	// those to /livez, /readyz, /metrics and for streams. Default: no spans, no metrics, W3C
	// trace context.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	Propagator     propagation.TextMapPropagator

	// RequestTimeout is the time limit of every request, without the wait that it prefers; default 10
	// seconds, for NewAdmin 60. The work ends a second earlier, or a tenth of the limit, so that the response leaves in time.
	// It must be less than the WriteTimeout of the server, so that the response can still be written.
	RequestTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func(context.Context) error { return nil }
	}
	if c.TracerProvider == nil {
		c.TracerProvider = tracenoop.NewTracerProvider()
	}
	if c.MeterProvider == nil {
		c.MeterProvider = metricnoop.NewMeterProvider()
	}
	if c.Propagator == nil {
		c.Propagator = propagation.TraceContext{}
	}
	c.Drain = cmp.Or(c.Drain, new(atomic.Bool))
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 10*time.Second)
	return c
}

// api implements the generated [StrictServerInterface].
type api struct {
	Config
	rules   rules
	sites   *http.CrossOriginProtection
	keys    sync.Map // the idempotency keys of requests at work, see lockKey
	outages outageLog
	stores  *readiness
}

// New returns a handler for the whole service, except for what [NewAdmin] serves.
// It fails only when the embedded specification is broken.
func New(c Config) (http.Handler, error) {
	a := &api{Config: c.withDefaults(), sites: http.NewCrossOriginProtection()}
	a.stores = newReadiness(a.Ready)
	engine, err := a.engine(func(r rule) bool { return !r.admin })
	if err != nil {
		return nil, err
	}
	engine.GET(livePath, a.live)
	engine.GET(readyPath, a.ready)
	if err := errors.Join(a.serveDocs(engine), serveControlRoom(engine)); err != nil {
		return nil, err
	}
	return a.commonHeaders(engine), nil
}

// engine returns a router with the operations of the specification that serves accepts.
func (a *api) engine(serves func(rule) bool) (*gin.Engine, error) {
	rules, err := rulesOf()
	if err != nil {
		return nil, err
	}
	a.rules = rules
	gin.SetMode(gin.ReleaseMode) // debug mode prints the headers of a request that panics
	engine := gin.New()
	if err := engine.SetTrustedProxies(nil); err != nil {
		return nil, err
	}
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	engine.UseEscapedPath = true // an encoded slash is part of a name, such as the id of a timer
	engine.Use(a.telemetry(), a.logRequest, a.recoverPanic, a.limitTime, a.refuseOtherSites)
	engine.NoRoute(func(c *gin.Context) { a.refuse(c, refuse(TypeNotFound, "There is nothing at this path.")) })
	engine.NoMethod(a.noMethod)
	checked := engine.Group("/", a.identify, a.check)
	middlewares := []StrictMiddlewareFunc{a.once, a.applyPreferences, a.limitCustomer} // the last one runs first
	served := filteredRouter{IRouter: checked, has: func(route string) bool { return serves(rules[route]) }}
	RegisterHandlersWithOptions(served, NewStrictHandlerWithOptions(a, middlewares, StrictGinServerOptions{
		RequestErrorHandlerFunc:  a.refuse,
		HandlerErrorFunc:         a.refuse,
		ResponseErrorHandlerFunc: a.refuse,
	}), GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) {
			a.refuse(c, &refusal{Problem: newProblem(TypeMalformedRequest, "A parameter is malformed."), cause: err})
		},
	})
	return engine, nil
}

// telemetry returns the middleware that measures requests.
func (a *api) telemetry() gin.HandlerFunc {
	return otelgin.Middleware("shop",
		otelgin.WithTracerProvider(a.TracerProvider),
		otelgin.WithMeterProvider(a.MeterProvider),
		otelgin.WithPropagators(a.Propagator),
		otelgin.WithFilter(func(r *http.Request) bool {
			// The duration of a stream, which may be hours, would distort the metrics of requests.
			return r.URL.Path != livePath && r.URL.Path != readyPath && r.URL.Path != metricsPath && r.URL.Path != eventsPath
		}),
	)
}

// NewServer returns a server for h with time limits against slow and greedy clients. It logs
// its errors with l.
func NewServer(h http.Handler, l *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(l.Handler(), slog.LevelWarn),
	}
}
