package timeout

import (
	"context"
	"slices"
	"time"
)

const (
	watchEvery = time.Second      // how often pauses are read
	beatEvery  = 5 * time.Second  // how often a consumer says that its lane has one
	silence    = 30 * time.Second // after which a lane has no consumer
)

// watch learns which kinds are paused, and tells that the lane has a consumer,
// until ctx ends. What it knew last holds while the database does not answer.
func (q *Queue) watch(ctx context.Context) {
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	var beaten time.Time
	for {
		q.readPaused(ctx)
		if beaten.IsZero() || time.Since(beaten) >= beatEvery {
			beaten = time.Now()
			q.beat(ctx)
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

func (q *Queue) readPaused(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	paused, err := q.store.Paused(call)
	if err != nil {
		q.failed(ctx, "", "read pauses", err)
		return
	}
	for kind, w := range q.kinds {
		w.paused.Store(slices.Contains(paused, kind))
	}
}

func (q *Queue) beat(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := q.store.Beat(call, q.cfg.Lane, q.cfg.Instance); err != nil {
		q.failed(ctx, "", "beat", err)
	}
}

// failed reports an error, unless it is the end of ctx.
func (q *Queue) failed(ctx context.Context, kind, during string, err error) {
	if ctx.Err() == nil {
		q.observer.Failed(kind, during, err)
	}
}
