package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"example.com/shop/internal/idempotency"
	"example.com/shop/internal/order"
	"example.com/shop/internal/stock"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// once carries out a request that has a key if no equal one was answered before, and answers
// as that one was otherwise. Equal requests of this process wait for each other here, before
// they have taken anything that others need. If the first one ended without an answer that
// counts, the next one does the work.
//
// The transaction of a request that was carried out before finds the key. So the key is not read first, which would cost
// each request a read. If a request ends before its transaction, the key is read then.
func (a *api) once(next StrictHandlerFunc, operation string) StrictHandlerFunc {
	return func(c *gin.Context, request any) (any, error) {
		ctx, in := requestOf(c)
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
		release, waited, err := a.lockKey(ctx, r.Scope)
		if err != nil {
			return nil, err
		}
		defer release()
		if waited {
			if err := a.answered(ctx, r); err != nil {
				return replay(c, operation, err)
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
		case !waited && !final && !isRepetition(err):
			if known := a.answeredAfter(ctx, r); isRepetition(known) {
				err = known
			}
		}
		return replay(c, operation, err)
	}
}

// late is for how long the answer to a request is looked for whose work has ended; it is part of endTime.
const late = endTime / 2

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

// lockKey waits until no other request of this process has the key, or until ctx ends, and reports whether it had to
// wait. Other processes are excluded by the store only. A waiting request holds nothing but its connection to the
// client. The caller must call release. If the deadline of ctx passes first, the error is [idempotency.ErrInFlight].
func (a *api) lockKey(ctx context.Context, s idempotency.Scope) (release func(), waited bool, err error) {
	mine := make(chan struct{}) // closed when this request has ended
	for {
		other, held := a.keys.LoadOrStore(s, mine)
		if !held {
			return func() { a.keys.Delete(s); close(mine) }, waited, nil
		}
		waited = true
		select {
		case <-other.(chan struct{}): //nolint:errcheck,forcetypeassert // Only such channels are stored.
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
				return nil, true, cause
			}
			return nil, true, idempotency.ErrInFlight
		}
	}
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

// replay returns the response to an operation that was carried out before, if err has its result. The handler's own
// functions make it from the result. So a replay has the same status, Location and body.
func replay(c *gin.Context, operation string, err error) (any, error) {
	before, ok := errors.AsType[*idempotency.AnsweredError](err)
	if !ok || before.Answer.Status != 0 {
		return nil, err
	}
	var (
		o      order.Order
		l      stock.Level
		result any = &o
	)
	if operation == "RestockSKU" {
		result = &l
	}
	if err := json.Unmarshal(before.Answer.Body, result); err != nil {
		return nil, fmt.Errorf("answer %s again: %w", operation, err)
	}
	c.Header(replayedHeader, "true")
	switch operation {
	case "PlaceOrder":
		return placed(o), nil
	case "PayOrder":
		return paid(o), nil
	case "CancelOrder":
		return cancelled(o), nil
	case "ExtendOrder":
		return extended(o), nil
	default:
		return restocked(l), nil
	}
}
