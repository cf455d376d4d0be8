package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/singleflight"
)

const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

const (
	// readyTimeout is the time limit of Config.Ready.
	readyTimeout = time.Second
	// readyAnswer is how long /readyz waits for it. It is less than the `timeout check` of
	// deployments/haproxy.cfg, after which the balancer marks the instance down and cuts its requests.
	readyAnswer = 250 * time.Millisecond
)

// live reports that the process runs, whatever the state of its stores: a restart
// would not repair them.
func (a *api) live(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// ready reports whether a balancer should send requests to the instance.
func (a *api) ready(c *gin.Context) {
	if a.Drain.Load() {
		a.refuse(c, refuse(TypeDraining, "The instance is shutting down."))
		return
	}
	if err := a.stores.now(c.Request.Context()); err != nil {
		detail := "A store is unavailable."
		if missing, ok := errors.AsType[*NotReadyError](err); ok {
			detail = "An order could not be stored: " + missing.Part + "."
		}
		a.refuse(c, &refusal{Problem: newProblem(TypeStoreUnavailable, detail), cause: err})
		return
	}
	c.String(http.StatusOK, "ok\n")
}

// NotReadyError is an error of [Config.Ready] that says which part of what an order needs is missing.
type NotReadyError struct {
	Part string // for everybody to read, without a full stop
	Err  error
}

// Error implements error.
func (e *NotReadyError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotReadyError) Unwrap() error { return e.Err }

// readiness asks whether the stores answer. While a question takes long, the previous answer holds. The instance is
// ready until a question has failed: a slow first answer is no failure.
type readiness struct {
	ask      func(context.Context) error
	question singleflight.Group
	answer   atomic.Pointer[error] // to the last question that ended
}

func newReadiness(ask func(context.Context) error) *readiness {
	r := &readiness{ask: ask}
	r.answer.Store(new(error))
	return r
}

// now returns why the instance is not ready, or nil, within readyAnswer.
func (r *readiness) now(ctx context.Context) error {
	answered := r.question.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
		defer cancel()
		err := r.ask(ctx)
		r.answer.Store(&err)
		return nil, nil
	})
	late := time.NewTimer(readyAnswer)
	defer late.Stop()
	select {
	case <-answered:
	case <-late.C:
	case <-ctx.Done():
	}
	return *r.answer.Load()
}
