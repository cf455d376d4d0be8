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

// readyTimeout is the time limit of Config.Ready. A balancer that waits less takes an instance without
// a store for one that does not answer.
const readyTimeout = time.Second

// Drain announces that the instance is shutting down. After
// [Drain.Start], /readyz responds with 503, so that the balancer sends no more
// requests. Every response closes its connection, so that clients connect to
// other instances. Requests are still served. The zero value is not draining.
type Drain struct{ started atomic.Bool }

// Start starts the drain, which cannot be stopped.
func (d *Drain) Start() { d.started.Store(true) }

// Draining reports whether the drain has started.
func (d *Drain) Draining() bool { return d.started.Load() }

// live reports that the process runs, whatever the state of its stores: a restart
// would not repair them.
func (a *api) live(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// ready reports whether a balancer should send requests to the instance.
func (a *api) ready(c *gin.Context) {
	if a.Drain.Draining() {
		a.refuse(c, refuse(TypeDraining, "The instance is shutting down."))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := a.Ready(ctx); err != nil {
		a.refuse(c, &refusal{Problem: newProblem(TypeStoreUnavailable, "A store is unavailable."), cause: err})
		return
	}
	c.String(http.StatusOK, "ok\n")
}
