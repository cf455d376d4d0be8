package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

// once carries out a request that has a key if no equal one was answered before, and answers
// as that one was otherwise. Equal requests of this process wait for each other here, before
// they have taken anything that others need. If the first one ended without an answer that
// counts, the next one does the work.
//
// The transaction of an order that was placed before finds the key. So the key is not read first, which would cost
// each order a read. If a request ends before its transaction, the key is read then.
func (a *api) once(next StrictHandlerFunc, operation string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		ctx := c.Request.Context()
		in := stateOf(ctx)
		if in.key == "" {
			return next(c, request)
		}
		payload, err := json.Marshal(in.payload)
		if err != nil {
			return nil, fmt.Errorf("hash the payload: %w", err)
		}
		r := &idempotency.Request{
			Scope: scopeOf(in, request, c.Request.Method+" "+c.Request.URL.Path),
			Hash:  sha256.Sum256(payload),
		}
		release, waited, err := a.keyLocks.acquire(ctx, r.Scope)
		if err != nil {
			return nil, err
		}
		defer release()
		first := waited || operation != "PlaceOrder"
		if first {
			if err := a.answered(ctx, r); err != nil {
				return nil, rendered(operation, err)
			}
		}
		in.once = r
		response, err := next(c, request)
		if err == nil {
			return response, nil
		}
		switch answer, final := refusalOf(err); {
		case final && operation == "PlaceOrder": // the others are decided again when they are repeated
			err = cmp.Or(a.Orders.Refuse(ctx, r, answer), err)
		case !first && !final && !isRepetition(err):
			if known := a.answeredAfter(ctx, r); isRepetition(known) {
				err = known
			}
		}
		return nil, rendered(operation, err)
	}
}

// late is for how long the answer to a request is looked for whose time is over; it is less than
// answerTime.
const late = time.Second

// answeredAfter is answered for a request that failed, perhaps after it had waited until its time was over. The
// original request may have been answered meanwhile.
func (a *api) answeredAfter(ctx context.Context, r *idempotency.Request) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), late)
		defer cancel()
	}
	return a.answered(ctx, r)
}

// answered returns the answer to an equal request as the error that says so.
func (a *api) answered(ctx context.Context, r *idempotency.Request) error {
	answer, found, err := a.Orders.Answer(ctx, r)
	if found {
		return &idempotency.AnsweredError{Answer: answer}
	}
	return err
}

// isRepetition reports whether err says that the key was used before.
func isRepetition(err error) bool {
	_, replayed := errors.AsType[*idempotency.AnsweredError](err)
	return replayed || errors.Is(err, idempotency.ErrReused)
}

// scopeOf returns where the key of a request is unique: for the caller. If an admin or an unauthenticated caller
// places an order, it is the customer of the order. An admin does not share the keys of customers.
func scopeOf(in *requestState, request any, route string) idempotency.Scope {
	s := idempotency.Scope{Customer: in.caller.Customer, Route: route, Key: in.key}
	if r, ok := request.(PlaceOrderRequestObject); ok && in.owner() == "" {
		s.Customer = r.Body.CustomerID
	}
	if in.caller.Admin {
		s.Route = "admin " + route
	}
	return s
}

// refusalOf returns the answer to an operation that failed with err, and whether it is final: a conflict that will be one
// again. An order that is still in the queue is none.
func refusalOf(err error) (answer idempotency.Answer, final bool) {
	if isRepetition(err) {
		return idempotency.Answer{}, false
	}
	p := problemOf(err)
	final = p.Status == http.StatusConflict && p.Type != TypeRequestInFlight && p.State != string(order.Queued)
	return idempotency.Answer{Status: p.Status, Body: p.body()}, final
}

// rendered returns err with the response to a request that was carried out before, if err has its result.
func rendered(operation string, err error) error {
	again, ok := errors.AsType[*idempotency.AnsweredError](err)
	if !ok || again.Answer.Status != 0 {
		return err
	}
	answer, err := render(operation, again.Answer.Body)
	if err != nil {
		return fmt.Errorf("answer %s again: %w", operation, err)
	}
	return &idempotency.AnsweredError{Answer: answer}
}

// render returns the response to an operation that succeeded with result, byte for byte as its handler gives it.
func render(operation string, result []byte) (idempotency.Answer, error) {
	var (
		o    order.Order
		l    stock.Level
		page recording
		err  error
	)
	if operation == "RestockSKU" {
		err = json.Unmarshal(result, &l)
	} else {
		err = json.Unmarshal(result, &o)
	}
	if err != nil {
		return idempotency.Answer{}, err
	}
	switch operation {
	case "PlaceOrder":
		err = placed(o).VisitPlaceOrderResponse(&page)
	case "PayOrder":
		err = paid(o).VisitPayOrderResponse(&page)
	case "CancelOrder":
		err = cancelled(o).VisitCancelOrderResponse(&page)
	case "ExtendOrder":
		err = extended(o).VisitExtendOrderResponse(&page)
	case "RestockSKU":
		err = restocked(l).VisitRestockSKUResponse(&page)
	default:
		err = errors.New("the operation takes no key")
	}
	return idempotency.Answer{Status: page.status, Location: page.header.Get("Location"), Body: page.body.Bytes()}, err
}

// recording is a [http.ResponseWriter] that keeps what is written.
type recording struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter], and so do the others.
func (r *recording) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader implements [http.ResponseWriter].
func (r *recording) WriteHeader(status int) { r.status = status }

// Write implements [http.ResponseWriter].
func (r *recording) Write(p []byte) (int, error) { return r.body.Write(p) }

// writeReplay answers as an equal request was answered.
func writeReplay(c *gin.Context, a idempotency.Answer) {
	contentType := "application/json"
	if a.Status >= http.StatusBadRequest {
		contentType = problemJSON
	}
	if a.Location != "" {
		c.Header("Location", a.Location)
	}
	c.Header("Idempotent-Replayed", "true")
	c.Abort()
	c.Data(a.Status, contentType, a.Body)
}
