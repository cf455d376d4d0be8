package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/dlock/permits"
	"example.com/shop/internal/events"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const (
	problemJSON          = "application/problem+json"
	timeoutDetail        = "The request waited for a lock or a row until its time limit. Nothing happened."
	outcomeUnknownDetail = "The store did not confirm the request, which may have been carried out."
	internalDetail       = "The service failed unexpectedly. Its log has the error."
)

// outcomes maps the errors of the domain to problems; the first match
// wins. If own is set, the error's text after the sentinel is meant for the client and becomes part of the detail.
var outcomes = []struct {
	err    error
	typ    ProblemType
	detail string
	own    bool
}{
	{err: events.ErrTooMany, typ: TypeTooManyListeners, detail: "Too many clients subscribe to events of this instance."},
	{err: events.ErrClosed, typ: TypeDraining, detail: "The instance is shutting down."},
	{err: permits.ErrClosed, typ: TypeDraining, detail: "The instance is shutting down. Nothing happened."},
	{err: identity.ErrUnavailable, typ: TypeStoreUnavailable, detail: "The API key cannot be checked now. Nothing happened."},
	{err: idempotency.ErrReused, typ: TypeIdempotencyKeyReused, detail: "The Idempotency-Key was used with another payload. Nothing happened."},
	{err: idempotency.ErrInFlight, typ: TypeRequestInFlight, detail: "A request with the same Idempotency-Key was in flight until the time limit of this request. This request did nothing."},
	{err: order.ErrCrowded, typ: TypeConcurrencyLimit, detail: "Too many orders of a SKU are in flight. Nothing happened."},
	{err: order.ErrConcurrencyLimit, typ: TypeConcurrencyLimit, detail: "Too many orders are in flight. Nothing happened."},
	{err: order.ErrStopping, typ: TypeDraining, detail: "The instance is shutting down, and the order was still waiting for units. Nothing happened."},
	{err: order.ErrNotFound, typ: TypeNotFound, detail: "There is no such order."},
	{err: stock.ErrNotFound, typ: TypeNotFound, detail: "There is no such SKU."},
	{err: timeout.ErrNotFound, typ: TypeNotFound, detail: "There is no such timer: it was cancelled, or has fired."},
	{err: cluster.ErrUnknownKey, typ: TypeNotFound, detail: "There is no such setting", own: true},
	{err: cluster.ErrInvalid, typ: TypeInvalidRequest, detail: "The setting cannot have this value", own: true},
	{err: cluster.ErrConflict, typ: TypeSettingConflict, detail: "The setting has another version than the one to replace. Nothing happened."},
	{err: cluster.ErrReadOnly, typ: TypeConfigReadOnly, detail: "The instances were started without --zookeeper, and have the configuration of their flags."},
	{err: order.ErrUnknownSKU, typ: TypeUnknownSKU, detail: "An item names a SKU that does not exist. Nothing was reserved."},
	{err: order.ErrInvalid, typ: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrInvalid, typ: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrUnknownStrategy, typ: TypeUnknownStrategy, detail: "No strategy has this name", own: true},
	{err: stock.ErrStrategyUnavailable, typ: TypeStrategyUnavailable, detail: "The strategy needs a store that this instance was started without", own: true},
	{err: stock.ErrExists, typ: TypeSKUExists, detail: "The SKU exists with another strategy, limit or number of units. Strategy and limit never change, its stock only by restocking."},
	{err: stock.ErrLockAway, typ: TypeStoreUnavailable, detail: "The lock service of a SKU is unavailable. Nothing happened."},
	{err: stock.ErrUnavailable, typ: TypeStoreUnavailable, detail: "A store that the request needs is unavailable. Nothing happened."},
	{err: timeout.ErrUnavailable, typ: TypeStoreUnavailable, detail: "A store that the request needs is unavailable. Nothing happened."},
	{err: stock.ErrFencesLost, typ: TypeLockTimeout, detail: "The lock service of a SKU has lost its data: its fencing tokens are below the last accepted token. Nothing happened. An operator can repair that: shop fence rebase SKU."},
	{err: stock.ErrLockHeld, typ: TypeLockTimeout, detail: "Another order holds the lock of a SKU, and this order reached its maximum wait. Nothing happened."},
	{err: stock.ErrRowLocked, typ: TypeLockTimeout, detail: "Another transaction holds the lock of a row for longer than a request waits. Nothing happened."},
	{err: stock.ErrBusy, typ: TypeLockTimeout, detail: timeoutDetail},
	{err: context.DeadlineExceeded, typ: TypeLockTimeout, detail: timeoutDetail},
	{err: context.Canceled, typ: TypeLockTimeout, detail: timeoutDetail}, // the client is gone and will not read the response
}

// problemOf returns the problem that reports err.
func problemOf(err error) Problem {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.Problem
	}
	if errors.Is(err, order.ErrOutcomeUnknown) || errors.Is(err, cluster.ErrUncertain) {
		// This case comes first, because every other problem says that nothing happened.
		return newProblem(TypeOutcomeUnknown, outcomeUnknownDetail)
	}
	if short, ok := errors.AsType[*stock.ShortageError](err); ok {
		p := newProblem(TypeOutOfStock, "Not enough units are for sale. Nothing was reserved.")
		if errors.Is(err, order.ErrNotWaiting) {
			p.Detail = "Not enough units are for sale. The order did not wait, because too many orders wait, in all or of this customer. Nothing was reserved."
		}
		for _, s := range short.Shortages {
			p.Shortages = append(p.Shortages, Shortage{SKU: s.SKU, Requested: s.Requested, Available: s.Available})
		}
		return p
	}
	if over, ok := errors.AsType[*order.LimitError](err); ok {
		return overLimit(over)
	}
	if conflict, ok := errors.AsType[*order.StateError](err); ok {
		p := newProblem(TypeOrderStateConflict, "The order is "+string(conflict.Order.Status)+", which does not allow this.")
		p.OrderID, p.State = conflict.Order.ID, string(conflict.Order.Status)
		return p
	}
	for _, o := range outcomes {
		if !errors.Is(err, o.err) {
			continue
		}
		detail := o.detail
		if o.own {
			_, rest, _ := strings.Cut(err.Error(), o.err.Error())
			detail += ": " + shorten(strings.TrimLeft(rest, ": ")) + "."
		}
		return newProblem(o.typ, detail)
	}
	return newProblem(TypeInternal, internalDetail)
}

func overLimit(e *order.LimitError) Problem {
	p := newProblem(TypePurchaseLimit, "With this order the customer would have more units of a SKU than one customer may buy. Nothing was reserved.")
	if e.SKU == "" {
		p = newProblem(TypeOpenOrdersLimit, "The customer has as many open orders as one customer may have. Nothing was reserved.")
	}
	p.Exceeded = &Exceeded{SKU: e.SKU, Limit: e.Limit, Had: e.Had}
	return p
}

func newProblem(t ProblemType, detail string) Problem {
	k := lookupType(t)
	return Problem{Type: t, Title: k.title, Status: k.status, Detail: detail}
}

// refusal is an error with a problem.
type refusal struct {
	Problem
	cause error         // for the log; may be nil
	after time.Duration // Retry-After, at least a second
}

func (r *refusal) Error() string {
	if r.cause != nil {
		return r.Detail + " " + r.cause.Error()
	}
	return r.Detail
}

func (r *refusal) Unwrap() error { return r.cause }

func refuse(t ProblemType, detail string) *refusal {
	return &refusal{Problem: newProblem(t, detail)}
}

// refuse responds with the problem of err, and logs err if an operator
// must know it.
func (a *api) refuse(c *gin.Context, err error) {
	if again, ok := errors.AsType[*idempotency.AnsweredError](err); ok {
		c.Header(replayedHeader, "true")
		writeProblem(c, again.Answer.Status, again.Answer.Body)
		return
	}
	p := problemOf(err)
	if p.Type == TypeOutcomeUnknown {
		if strings.HasPrefix(c.FullPath(), "/api/v1/orders/") {
			p.OrderID = c.Param("id")
		}
		if o, ok := errors.AsType[*unconfirmedError](err); ok {
			p.OrderID = o.id
		}
	}
	a.logRefusal(c, p, err)
	switch p.Type {
	case TypeConcurrencyLimit:
		a.setRateLimitHeaders(c, true)
	case TypeUnauthenticated:
		c.Header("WWW-Authenticate", `Bearer realm="shop"`)
	default:
	}
	if lookupType(p.Type).advice.retryAfter {
		c.Header("Retry-After", wholeSeconds(retryAfter(err), 1))
	}
	if p.Status != http.StatusConflict { // which is stored for its key, and is the same for each retry
		p.TraceID = traceID(c)
	}
	writeProblem(c, p.Status, p.body())
}

// logRefusal logs that a request was refused with p because of err. Errors that all requests get while a store is
// unavailable are logged once in ten seconds, with their number. A client that has gone is not logged as a failure.
func (a *api) logRefusal(c *gin.Context, p Problem, err error) {
	ctx := c.Request.Context()
	level, since := slog.LevelDebug, 0
	switch {
	case p.Type == TypeInternal:
		level = slog.LevelError
	case p.Type == TypeOutcomeUnknown, p.Type == TypeStoreUnavailable && !errors.Is(ctx.Err(), context.Canceled), errors.Is(err, stock.ErrFencesLost):
		var ok bool
		if since, ok = a.outages.allow(p.Type); ok {
			level = slog.LevelWarn
		}
	}
	if !a.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
		slog.String("type", string(p.Type)), slog.Any("error", err),
	}
	if since > 0 {
		attrs = append(attrs, slog.Int("similar_since", since))
	}
	if why, ok := errors.AsType[*identity.RefusedError](err); ok {
		attrs = append(attrs, slog.Any("key", why))
	}
	a.Logger.LogAttrs(ctx, level, "request refused", attrs...)
}

// retryAfter returns the delay after which the client may retry; 0 if err has none.
func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.after
	}
	if full, ok := errors.AsType[*permits.ConcurrencyLimitError](err); ok {
		return full.RetryAfter
	}
	return 0
}

// writeProblem sends a problem as the response and skips later handlers.
func writeProblem(c *gin.Context, status int, problem []byte) {
	c.Abort()
	c.Data(status, problemJSON, problem)
}

// body returns p as JSON.
func (p Problem) body() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte("{}") // strings and integers always marshal
	}
	return append(body, '\n')
}

// shorten bounds text that a client sent, for the response and the log.
func shorten(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
