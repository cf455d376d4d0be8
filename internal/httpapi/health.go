package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// readyTimeout bounds the question whether the stores answer. It is shorter
// than the interval at which a balancer asks.
const readyTimeout = time.Second

// Drain is the announcement that the instance is about to stop. From
// [Drain.Start] on, /readyz answers 503, so that the balancer sends nothing
// more, and every answer closes its connection, so that clients open their next
// one elsewhere. Requests are still served. The zero value is not draining.
type Drain struct{ started atomic.Bool }

// Start begins the drain. It cannot be taken back.
func (d *Drain) Start() { d.started.Store(true) }

// Draining reports whether the drain has begun.
func (d *Drain) Draining() bool { return d.started.Load() }

// live says that the process runs, whatever becomes of its stores: restarting
// it would not repair them.
func (a *api) live(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// ready says whether the instance should be sent requests.
func (a *api) ready(c *gin.Context) {
	if a.Drain.Draining() {
		a.refuse(c, refuse(TypeDraining, "The instance is about to stop."))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := a.Ready(ctx); err != nil {
		a.refuse(c, &refusal{Problem: newProblem(TypeStoreUnavailable, "A store does not answer."), cause: err})
		return
	}
	c.String(http.StatusOK, "ok\n")
}
