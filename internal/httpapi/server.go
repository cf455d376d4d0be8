package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"example.com/shop/internal/permits"
)

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml openapi.yaml

// Config configures a handler. Orders and Stock are required by [New].
type Config struct {
	Orders Orders
	Stock  Stock

	// Strategies are those that are listed. Default: none.
	Strategies Strategies

	// Identity says who callers are. Default: nobody is asked, and everybody may do everything.
	Identity Identity

	// LocalOnly refuses requests for other hosts than localhost and loopback addresses. It is for a listener on
	// a loopback address that asks nobody for a key. [NewAdmin] always refuses them.
	LocalOnly bool

	// Rates bounds how often a customer may place orders. Default: as often as one likes.
	Rates Rates

	// Permits says how many orders may be placed at once, for those who are refused because
	// of that. Default: they are not told.
	Permits func() permits.Stats

	// Timers is what NewAdmin serves, and required there.
	Timers Timers

	// Cluster is what is shown of the other instances. Default: nothing.
	Cluster Cluster

	// Events is what is streamed. Default: nobody may listen.
	Events Events

	// Heartbeat is how often a stream on which nothing happens shows that it lives; default 10
	// seconds, as half a minute is what proxies often wait.
	Heartbeat time.Duration

	// Instance names this process in every answer.
	Instance string

	// Ready reports why the instance cannot work; it is asked by /readyz and
	// has one second to answer. Default: it always can.
	Ready func(ctx context.Context) error

	// Drain tells the handler that the instance is about to stop. Default: it
	// never is.
	Drain *Drain

	// Metrics is served as /metrics by the handler of NewAdmin. Default: no such path.
	Metrics http.Handler

	// Logger hears of failures, and at debug level of every request. Default:
	// it is silent.
	Logger *slog.Logger

	// TracerProvider, MeterProvider and Propagator measure requests, except
	// those to /livez, /readyz, /metrics and for streams. Default: no spans, no metrics, W3C
	// trace context.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	Propagator     propagation.TextMapPropagator

	// RequestTimeout bounds every request, beyond what it prefers to wait; default 10
	// seconds, for an admin 60.
	// It is less than the WriteTimeout of the server, so that the answer still gets through.
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
	c.Drain = cmp.Or(c.Drain, new(Drain))
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
	flights flights
	repeats repeats
}

// New returns a handler for the whole service, except for what [NewAdmin] serves.
// It fails only when the embedded specification is broken.
func New(c Config) (http.Handler, error) {
	a := &api{Config: c.withDefaults(), sites: http.NewCrossOriginProtection()}
	engine, err := a.engine(func(r rule) bool { return r.tag != timersTag })
	if err != nil {
		return nil, err
	}
	engine.GET(livePath, a.live)
	engine.GET(readyPath, a.ready)
	if err := a.serveDocs(engine); err != nil {
		return nil, err
	}
	return a.stamp(engine), nil
}

// engine returns a router with those operations of the specification that serves
// says.
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
	engine.UseEscapedPath = true // an encoded slash is a part of a name, such as the id of a timer
	engine.Use(a.telemetry(), a.logRequest, a.recoverPanic, a.limitTime, a.refuseOtherSites)
	engine.NoRoute(func(c *gin.Context) { a.refuse(c, refuse(TypeNotFound, "There is nothing at this path.")) })
	engine.NoMethod(a.noMethod)
	checked := engine.Group("/", a.identify, func(c *gin.Context) {
		if err := rules.check(c); err != nil {
			a.refuse(c, err)
		}
	})
	middlewares := []StrictMiddlewareFunc{a.once, a.applyPreferences, a.limitRate, a.refuseStrangers} // the last one comes first
	served := some{IRouter: checked, has: func(route string) bool { return serves(rules[route]) }}
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
			// A stream lasts for hours, which says nothing about requests.
			return r.URL.Path != livePath && r.URL.Path != readyPath && r.URL.Path != metricsPath && r.URL.Path != eventsPath
		}),
	)
}

// NewServer returns a server for h that a slow or greedy client cannot keep
// busy. What it complains about goes to l.
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
