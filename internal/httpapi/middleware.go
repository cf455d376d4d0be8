package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// commonHeaders sets the headers of every response of next, including errors of the router.
func (a *api) commonHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Instance-Id", a.Instance)
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // only responses below /docs are pages
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method == http.MethodHead { // the server omits the body of a GET in its place (RFC 9110, 9.3.2)
			r = r.WithContext(context.WithValue(r.Context(), headKey{}, true))
			r.Method = http.MethodGet
		}
		next.ServeHTTP(&response{ResponseWriter: w, drain: a.Drain}, r)
	})
}

type headKey struct{}

// noMethod refuses a method that the path does not have.
func (a *api) noMethod(c *gin.Context) {
	allowed := strings.Split(c.Writer.Header().Get("Allow"), ", ")
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	c.Header("Allow", strings.Join(allowed, ", "))
	a.refuse(c, refuse(TypeMethodNotAllowed, "The path does not have this method."))
}

// response closes the connection if the instance drains when the response begins. A check at the start of the request
// is not enough. A request that waits when the drain starts would leave its connection open, and the client's next
// request would meet a closing socket.
type response struct {
	http.ResponseWriter
	drain *atomic.Bool
}

func (r *response) WriteHeader(status int) {
	if r.drain.Load() {
		r.Header().Set("Connection", "close")
	}
	r.ResponseWriter.WriteHeader(status)
}

// Flush and Unwrap make streaming responses possible.
func (r *response) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

const (
	// answerTime is the time limit for writing a response after the time limit of its request.
	answerTime = 5 * time.Second

	// endTime is how long before the time limit of a request its work ends; a tenth of the limit at most. It is for what
	// follows: an order waits for its transaction a moment longer, and the answer to its key is looked for.
	endTime = time.Second
)

// limitTime sets the deadline of the work of the request, unless its response is a stream. The wait that the
// client prefers is added, and the server's write deadline moves accordingly.
func (a *api) limitTime(c *gin.Context) {
	in := &requestState{rule: a.rules[c.Request.Method+" "+c.FullPath()], header: c.Request.Header}
	if list := in.header.Values("Prefer"); in.rule.prefer && list != nil {
		in.prefer = parsePrefer(strings.Join(list, ","))
	}
	limit := a.RequestTimeout + in.prefer.Wait
	if in.prefer.Wait > 0 {
		err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(limit + answerTime))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			a.Logger.WarnContext(c.Request.Context(), "write deadline not extended, response may be cut off", "error", err)
		}
	}
	ctx := context.WithValue(c.Request.Context(), requestKey{}, in)
	if !in.rule.stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit-min(endTime, limit/10))
		defer cancel()
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// traceID returns the trace of a request, or nothing if it has none.
func traceID(c *gin.Context) string {
	if s := trace.SpanContextFromContext(c.Request.Context()); s.IsValid() {
		return s.TraceID().String()
	}
	return ""
}

// logRequest logs the route instead of the path, and no headers, so that neither secrets
// nor names of customers reach the log. The client gets the trace of its request, in the format of traceparent:
// https://www.w3.org/TR/trace-context-2.
func (a *api) logRequest(c *gin.Context) {
	start := time.Now()
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(c.Request.Context(), carrier)
	if s := carrier.Get("traceparent"); s != "" {
		c.Header("traceresponse", s)
	}
	c.Next()
	a.Logger.LogAttrs(c.Request.Context(), slog.LevelDebug, "request",
		slog.String("method", c.Request.Method),
		slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()),
		slog.Duration("duration", time.Since(start)),
	)
}

// recoverPanic responds to a panic with a problem without details. If the response has begun, it closes
// the connection, so that the client does not consider half a response complete.
func (a *api) recoverPanic(c *gin.Context) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it in the same way
			panic(cause)
		}
		a.Logger.ErrorContext(c.Request.Context(), "request panicked",
			"method", c.Request.Method, "route", c.FullPath(), "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		p := newProblem(TypeInternal, internalDetail)
		p.TraceID = traceID(c)
		writeProblem(c, p.Status, p.body())
	}()
	c.Next()
}
