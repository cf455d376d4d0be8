package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/cluster"
	"example.com/shop/internal/events"
	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/identity"
	"example.com/shop/internal/order"
	"example.com/shop/internal/permits"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

const (
	problemJSON    = "application/problem+json"
	busyDetail     = "The request was still waiting when its time was up. Nothing happened."
	internalDetail = "The service failed. The failure is in its log."
)

// outcomes maps the errors of the domain to problems; the first that matches
// counts. Where own is set the error says more behind the sentinel's text, in
// words that are meant for the client.
var outcomes = []struct {
	err    error
	kind   ProblemType
	detail string
	own    bool
}{
	{err: events.ErrTooMany, kind: TypeTooManyListeners, detail: "As many clients follow events here as may."},
	{err: events.ErrClosed, kind: TypeDraining, detail: "The instance is about to stop."},
	{err: permits.ErrClosed, kind: TypeDraining, detail: "The instance is about to stop. Nothing happened."},
	{err: identity.ErrUnavailable, kind: TypeStoreUnavailable, detail: "The API key cannot be checked now. Nothing happened."},
	{err: idempotency.ErrReused, kind: TypeIdempotencyKeyReused, detail: "The Idempotency-Key was used with another payload. Nothing happened."},
	{err: idempotency.ErrInFlight, kind: TypeRequestInFlight, detail: "A request with the same Idempotency-Key was at work until the time of this one was up. This one did nothing."},
	{err: order.ErrCrowded, kind: TypeSaturated, detail: "As many orders of a SKU are being placed as may be at once, which leaves room for other SKUs. Nothing happened."},
	{err: order.ErrSaturated, kind: TypeSaturated, detail: "As many orders are being placed as may be at once. Nothing happened."},
	{err: order.ErrStopping, kind: TypeDraining, detail: "The instance is about to stop, and the order was still waiting for units. Nothing happened."},
	{err: order.ErrNotFound, kind: TypeNotFound, detail: "There is no such order."},
	{err: stock.ErrNotFound, kind: TypeNotFound, detail: "There is no such SKU."},
	{err: timeout.ErrNotFound, kind: TypeNotFound, detail: "There is no such timer: it was cancelled, or has been worked off."},
	{err: cluster.ErrUnknownKey, kind: TypeNotFound, detail: "There is no such setting."},
	{err: cluster.ErrInvalid, kind: TypeInvalidRequest, detail: "The setting cannot have this value", own: true},
	{err: cluster.ErrConflict, kind: TypeSettingConflict, detail: "The setting has another version than the one to be replaced. Nothing happened."},
	{err: cluster.ErrReadOnly, kind: TypeSettingsFixed, detail: "The instances were started without --zookeeper, and have the configuration of their flags."},
	{err: order.ErrUnknownSKU, kind: TypeUnknownSKU, detail: "An item names a SKU that does not exist. Nothing was reserved."},
	{err: order.ErrInvalid, kind: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrInvalid, kind: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrUnknownStrategy, kind: TypeUnknownStrategy, detail: "No strategy has this name."},
	{err: stock.ErrStrategyUnavailable, kind: TypeStrategyUnavailable, detail: "The strategy needs a store that this instance was started without", own: true},
	{err: stock.ErrExists, kind: TypeSKUExists, detail: "The SKU exists with another strategy, limit or number of units. Strategy and limit never change, its stock only by restocking."},
	{err: stock.ErrLockAway, kind: TypeStoreUnavailable, detail: "The lock service of a SKU does not answer. Nothing happened."},
	{err: stock.ErrUnavailable, kind: TypeStoreUnavailable, detail: "A store that the request needs does not answer. Nothing happened."},
	{err: timeout.ErrUnavailable, kind: TypeStoreUnavailable, detail: "A store that the request needs does not answer."},
	{err: stock.ErrFencesLost, kind: TypeBusy, detail: "The lock service of a SKU has lost its data, and its fences are below those that were accepted. Nothing happened. Whoever operates the shop can end that: shop fence rebase SKU."},
	{err: stock.ErrLockHeld, kind: TypeBusy, detail: "Another order holds the lock of a SKU, and this one was not to wait longer for it. Nothing happened."},
	{err: stock.ErrRowLocked, kind: TypeBusy, detail: "Somebody else keeps a row locked that the request needs, longer than a request waits for one. Nothing happened."},
	{err: stock.ErrBusy, kind: TypeBusy, detail: busyDetail},
	{err: context.DeadlineExceeded, kind: TypeBusy, detail: busyDetail},
	{err: context.Canceled, kind: TypeBusy, detail: busyDetail}, // the client is gone and will not read it
}

// problemOf returns the problem that err is answered with.
func problemOf(err error) Problem {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.Problem
	}
	if errors.Is(err, order.ErrOutcomeUnknown) || errors.Is(err, cluster.ErrUncertain) {
		// Before all else: every other problem says that nothing happened.
		return newProblem(TypeOutcomeUnknown, "The store did not confirm the request, which may have been carried out.")
	}
	if short, ok := errors.AsType[*stock.ShortageError](err); ok {
		p := newProblem(TypeOutOfStock, "Not enough units are for sale. Nothing was reserved.")
		if errors.Is(err, order.ErrNotWaiting) {
			p.Detail = "Not enough units are for sale, and as many orders wait for some as may, in all or of this customer: this one did not wait. Nothing was reserved."
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
		return newProblem(o.kind, detail)
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
	k := kindOf(t)
	return Problem{Type: t, Title: k.title, Status: k.status, Detail: detail}
}

// refusal is an error that knows its problem.
type refusal struct {
	Problem
	cause error         // for the log; may be nil
	after time.Duration // Retry-After; a second if it is less
}

func (r *refusal) Error() string {
	if r.cause != nil {
		return r.Detail + " " + r.cause.Error()
	}
	return r.Detail
}

func (r *refusal) Unwrap() error { return r.cause }

func refuse(kind ProblemType, detail string) *refusal {
	return &refusal{Problem: newProblem(kind, detail)}
}

// refuse answers the request with the problem of err, and logs what an operator
// has to know of.
func (a *api) refuse(c *gin.Context, err error) {
	if again, ok := errors.AsType[*idempotency.AnsweredError](err); ok {
		writeReplay(c, again.Answer)
		return
	}
	p := problemOf(err)
	if p.Type == TypeOutcomeUnknown {
		p.OrderID = c.Param("id")
		if o, ok := errors.AsType[*unconfirmedError](err); ok {
			p.OrderID = o.id
		}
	}
	a.logRefusal(c, p, err)
	switch p.Type {
	case TypeSaturated:
		a.sayLimits(c, true)
	case TypeUnauthenticated:
		c.Header("WWW-Authenticate", `Bearer realm="shop"`)
	default:
	}
	if kindOf(p.Type).retry {
		c.Header("Retry-After", wholeSeconds(retryAfter(err), 1))
	}
	writeProblem(c, p)
}

// logRefusal logs that a request was refused with p because of err. Of what an operator has to know and all requests
// meet while a store is away, a line in ten seconds says how many there were. A client that has gone is no failure.
func (a *api) logRefusal(c *gin.Context, p Problem, err error) {
	ctx := c.Request.Context()
	level, since := slog.LevelDebug, 0
	switch {
	case p.Type == TypeInternal:
		level = slog.LevelError
	case p.Type == TypeOutcomeUnknown, p.Type == TypeStoreUnavailable && !errors.Is(ctx.Err(), context.Canceled), errors.Is(err, stock.ErrFencesLost):
		var ok bool
		if since, ok = a.repeats.allow(p.Type); ok {
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

// retryAfter returns when err wants to see the client again; 0 if it does not say.
func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.after
	}
	if full, ok := errors.AsType[*permits.SaturatedError](err); ok {
		return full.RetryAfter
	}
	return 0
}

// writeProblem sends p as the answer and keeps later handlers from running.
func writeProblem(c *gin.Context, p Problem) {
	c.Abort()
	c.Data(p.Status, problemJSON, p.body())
}

// body returns p as it is sent.
func (p Problem) body() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte("{}") // strings and integers always marshal
	}
	return append(body, '\n')
}

// shorten keeps what a client sent from filling the answer or the log.
func shorten(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
