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
	"time"

	"github.com/gin-gonic/gin"
)

// stamp gives every answer of next, errors of the router included, the headers
// that all answers have.
func (a *api) stamp(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Instance-Id", a.Instance)
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // no answer is a page, except below /docs
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(&response{ResponseWriter: w, drain: a.Drain}, headAsGet(r))
	})
}

type headKey struct{}

// headAsGet returns what to serve for r: HEAD is GET whose body the server leaves out (RFC 9110, 9.3.2).
func headAsGet(r *http.Request) *http.Request {
	if r.Method != http.MethodHead {
		return r
	}
	get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
	get.Method = http.MethodGet
	return get
}

// noMethod refuses a method that the path does not have.
func (a *api) noMethod(c *gin.Context) {
	allowed := strings.Split(c.Writer.Header().Get("Allow"), ", ")
	if slices.Contains(allowed, http.MethodGet) {
		allowed = append(allowed, http.MethodHead)
	}
	c.Header("Allow", strings.Join(allowed, ", "))
	a.refuse(c, refuse(TypeMethodNotAllowed, "The path does not have this method."))
}

// response looks at the drain when the answer begins, not when the request
// does: a request that waited through the start of a drain would otherwise
// leave its connection open, and the client would send the next request into
// a socket that is being closed.
type response struct {
	http.ResponseWriter
	drain *Drain
}

func (r *response) WriteHeader(status int) {
	if r.drain.Draining() {
		r.Header().Set("Connection", "close")
	}
	r.ResponseWriter.WriteHeader(status)
}

// Flush and Unwrap keep streaming answers possible.
func (r *response) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// answerTime is what an answer may take to be written behind the deadline of its request.
const answerTime = 5 * time.Second

// limitTime gives the request its deadline, unless its answer is a stream. Waiting that the
// client prefers comes on top, and then the server must not cut the answer off when it
// usually would.
func (a *api) limitTime(c *gin.Context) {
	in := &call{rule: a.rules[c.Request.Method+" "+c.FullPath()]}
	limit := a.RequestTimeout
	if in.rule.has("Prefer") {
		in.prefer = parsePrefer(c.Request.Header.Values("Prefer"))
		limit += in.prefer.wait
	}
	if in.prefer.wait > 0 {
		err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(limit + answerTime))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			a.Logger.WarnContext(c.Request.Context(), "the answer may be cut off", "error", err)
		}
	}
	ctx := context.WithValue(c.Request.Context(), callKey{}, in)
	if !in.rule.stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// logRequest logs the route and not the path, and no headers: neither secrets
// nor names of customers reach the log.
func (a *api) logRequest(c *gin.Context) {
	start := time.Now()
	c.Next()
	a.Logger.LogAttrs(c.Request.Context(), slog.LevelDebug, "request",
		slog.String("method", c.Request.Method),
		slog.String("route", c.FullPath()),
		slog.Int("status", c.Writer.Status()),
		slog.Duration("duration", time.Since(start)),
	)
}

// recoverPanic answers a panic with a problem that says nothing about it. When
// the answer has begun it cuts the connection, so that the client does not take
// half an answer for a whole one.
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
		writeProblem(c, newProblem(TypeInternal, internalDetail))
	}()
	c.Next()
}

// requestContext returns the context of the request in place of the
// gin.Context that the generated code passes on. gin reuses that for the next
// request, and work that is detached from this one, such as the release of a
// lease, would read the values of a stranger.
func requestContext(ctx context.Context) context.Context {
	if c, ok := ctx.(*gin.Context); ok {
		return c.Request.Context()
	}
	return ctx
}
