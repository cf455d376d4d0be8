package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
	"example.com/shop/internal/timeout"
)

// kinds gives every type of problem its status and title.
var kinds = map[ProblemType]struct {
	status int
	title  string
}{
	TypeMalformedRequest:     {http.StatusBadRequest, "Malformed request"},
	TypeInvalidRequest:       {http.StatusUnprocessableEntity, "Invalid request"},
	TypeUnsupportedMediaType: {http.StatusUnsupportedMediaType, "Unsupported media type"},
	TypeBodyTooLarge:         {http.StatusRequestEntityTooLarge, "Body too large"},
	TypeMethodNotAllowed:     {http.StatusMethodNotAllowed, "Method not allowed"},
	TypeNotFound:             {http.StatusNotFound, "Not found"},
	TypeUnknownSKU:           {http.StatusUnprocessableEntity, "Unknown SKU"},
	TypeUnknownStrategy:      {http.StatusUnprocessableEntity, "Unknown strategy"},
	TypeStrategyUnavailable:  {http.StatusUnprocessableEntity, "Strategy unavailable"},
	TypeSKUExists:            {http.StatusConflict, "SKU exists"},
	TypeOutOfStock:           {http.StatusConflict, "Out of stock"},
	TypeOrderStateConflict:   {http.StatusConflict, "Order state conflict"},
	TypeBusy:                 {http.StatusServiceUnavailable, "Busy"},
	TypeStoreUnavailable:     {http.StatusServiceUnavailable, "Store unavailable"},
	TypeOutcomeUnknown:       {http.StatusServiceUnavailable, "Outcome unknown"},
	TypeDraining:             {http.StatusServiceUnavailable, "Draining"},
	TypeForbidden:            {http.StatusForbidden, "Forbidden"},
	TypeCanary:               {http.StatusConflict, "Canary"},
	TypeInternal:             {http.StatusInternalServerError, "Internal error"},
}

const (
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
	{err: order.ErrOutcomeUnknown, kind: TypeOutcomeUnknown, detail: "The store did not confirm the request, which may have been carried out."},
	{err: order.ErrNotFound, kind: TypeNotFound, detail: "There is no such order."},
	{err: stock.ErrNotFound, kind: TypeNotFound, detail: "There is no such SKU."},
	{err: timeout.ErrNotFound, kind: TypeNotFound, detail: "There is no such timer: it was cancelled, or has been worked off."},
	{err: order.ErrUnknownSKU, kind: TypeUnknownSKU, detail: "An item names a SKU that does not exist", own: true},
	{err: order.ErrInvalid, kind: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrInvalid, kind: TypeInvalidRequest, detail: "A value is out of bounds", own: true},
	{err: stock.ErrUnknownStrategy, kind: TypeUnknownStrategy, detail: "No strategy has this name."},
	{err: stock.ErrStrategyUnavailable, kind: TypeStrategyUnavailable, detail: "The strategy needs a store that this instance was started without."},
	{err: stock.ErrExists, kind: TypeSKUExists, detail: "The SKU exists with another strategy or another number of units. Its strategy never changes, its stock only by restocking."},
	{err: stock.ErrUnavailable, kind: TypeStoreUnavailable, detail: "A store that the request needs does not answer. Nothing happened."},
	{err: timeout.ErrUnavailable, kind: TypeStoreUnavailable, detail: "A store that the request needs does not answer."},
	{err: stock.ErrBusy, kind: TypeBusy, detail: busyDetail},
	{err: context.DeadlineExceeded, kind: TypeBusy, detail: busyDetail},
	{err: context.Canceled, kind: TypeBusy, detail: busyDetail}, // the client is gone and will not read it
}

// problemOf returns the problem that err is answered with.
func problemOf(err error) Problem {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.Problem
	}
	if short, ok := errors.AsType[*stock.ShortageError](err); ok {
		p := newProblem(TypeOutOfStock, "Not enough units are for sale. Nothing was reserved.")
		for _, s := range short.Shortages {
			p.Shortages = append(p.Shortages, Shortage{SKU: s.SKU, Requested: s.Requested, Available: s.Available})
		}
		return p
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

func newProblem(kind ProblemType, detail string) Problem {
	return Problem{Type: kind, Title: kinds[kind].title, Status: kinds[kind].status, Detail: detail}
}

// refusal is an error that knows its problem.
type refusal struct {
	Problem
	cause error // for the log; may be nil
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
	p := problemOf(err)
	if p.Type == TypeOutcomeUnknown {
		p.OrderID = c.Param("id")
		if o, ok := errors.AsType[*unconfirmedError](err); ok {
			p.OrderID = o.id
		}
	}
	level := slog.LevelDebug
	switch p.Type {
	case TypeInternal:
		level = slog.LevelError
	case TypeStoreUnavailable, TypeOutcomeUnknown:
		level = slog.LevelWarn
	default:
	}
	a.Logger.LogAttrs(c.Request.Context(), level, "request refused",
		slog.String("method", c.Request.Method), slog.String("route", c.FullPath()),
		slog.String("type", string(p.Type)), slog.Any("error", err))
	writeProblem(c, p)
}

// writeProblem sends p as the answer and keeps later handlers from running.
func writeProblem(c *gin.Context, p Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte("{}") // strings and integers always marshal
	}
	if p.Status == http.StatusServiceUnavailable {
		c.Header("Retry-After", "1")
	}
	c.Abort()
	c.Data(p.Status, "application/problem+json", append(body, '\n'))
}

// shorten keeps what a client sent from filling the answer or the log.
func shorten(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
