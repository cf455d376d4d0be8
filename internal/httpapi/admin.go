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
	// timersTag marks the operations of the specification that only an admin may use.
	timersTag = "timers"

	metricsPath = "/metrics"

	// adminTimeout is enough for a million timers to be rebuilt, and for a profile.
	adminTimeout = time.Minute
)

// NewAdmin returns a handler for those who look after the service: the timers, metrics, and
// profiles below /debug/pprof. With Config.Identity it asks for the key of an admin, except for
// metrics. It belongs on a
// loopback address all the same. There a browser is the one stranger that can reach it, and
// requests that a page of another site makes are refused.
func NewAdmin(c Config) (http.Handler, error) {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, adminTimeout)
	c.LocalOnly = true
	a := &api{Config: c.withDefaults(), sites: http.NewCrossOriginProtection()}
	engine, err := a.engine(func(r rule) bool { return r.tag == timersTag })
	if err != nil {
		return nil, err
	}
	engine.GET("/debug/pprof/*profile", a.identify, profile)
	if a.Metrics != nil {
		engine.GET(metricsPath, gin.WrapH(a.Metrics))
	}
	return a.stamp(engine), nil
}

// NewAdminServer is NewServer for the handler of [NewAdmin], which takes its time.
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

// some is a router that ignores the routes it is not to have.
type some struct {
	gin.IRouter
	has func(route string) bool // method and path
}

// GET implements [gin.IRouter], and so do the others.
func (s some) GET(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodGet, path, handlers)
}

// PUT implements [gin.IRouter].
func (s some) PUT(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodPut, path, handlers)
}

// POST implements [gin.IRouter].
func (s some) POST(path string, handlers ...gin.HandlerFunc) gin.IRoutes {
	return s.handle(http.MethodPost, path, handlers)
}

func (s some) handle(method, path string, handlers []gin.HandlerFunc) gin.IRoutes {
	if s.has(method + " " + path) {
		s.Handle(method, path, handlers...)
	}
	return s
}
