package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	metricsPath = "/metrics"

	// adminTimeout is enough to redrive many timers, and for a profile.
	adminTimeout = time.Minute
)

// NewAdmin returns a handler for operators: the timers, metrics, and profiles below /debug/pprof.
// With Config.Identity it requires the key of an admin, except for metrics. Serve it on a
// loopback address in any case. A browser can reach that address on behalf of other sites, so
// the handler refuses requests from pages of other sites.
func NewAdmin(c Config) (http.Handler, error) {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, adminTimeout)
	c.LocalOnly = true
	a := &api{Config: c.withDefaults(), sites: http.NewCrossOriginProtection()}
	engine, err := a.engine(func(r rule) bool { return r.admin })
	if err != nil {
		return nil, err
	}
	engine.GET("/debug/pprof/*profile", a.identify, profile)
	if a.Metrics != nil {
		engine.GET(metricsPath, gin.WrapH(a.Metrics))
	}
	return a.commonHeaders(engine), nil
}

// NewMetrics returns a handler for the metrics alone, which needs no key. Serve it where collectors reach it, and clients of the shop
// do not.
func NewMetrics(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, c.Metrics)
	return mux
}

// NewAdminServer is NewServer with a longer write timeout, for the handler of [NewAdmin].
func NewAdminServer(h http.Handler, l *slog.Logger) *http.Server {
	s := NewServer(h, l)
	s.WriteTimeout = adminTimeout + 5*time.Second
	return s
}

func profile(c *gin.Context) {
	switch c.Param("profile") {
	case "/cmdline":
		pprof.Cmdline(c.Writer, c.Request)
	case "/profile":
		pprof.Profile(c.Writer, c.Request)
	case "/symbol":
		pprof.Symbol(c.Writer, c.Request)
	case "/trace":
		pprof.Trace(c.Writer, c.Request)
	default:
		pprof.Index(c.Writer, c.Request)
	}
}

// filteredRouter is a router that adds only the routes that has accepts.
type filteredRouter struct {
	gin.IRouter
	has func(route string) bool // method and path
}

// GET implements [gin.IRouter].
func (s filteredRouter) GET(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodGet, path, handlers)
}

// PUT implements [gin.IRouter].
func (s filteredRouter) PUT(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodPut, path, handlers)
}

// POST implements [gin.IRouter].
func (s filteredRouter) POST(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodPost, path, handlers)
}

func (s filteredRouter) handle(method, path string, handlers []gin.HandlerFunc) gin.IRoutes {
	if s.has(method + " " + path) {
		s.Handle(method, path, handlers...)
	}
	return s
}
