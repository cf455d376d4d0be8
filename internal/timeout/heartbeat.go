package timeout

import (
	"context"
	"slices"
	"time"
)

const (
	watchEvery     = time.Second      // how often pauses are read
	heartbeatEvery = 5 * time.Second  // of a consumer of a partition
	orphanedAfter  = 30 * time.Second // time without a heartbeat after which a partition has no consumer
)

// watch reads which kinds are paused, and sends heartbeats, until ctx ends. While the database does not answer, the
// pauses that it read last stay. Timers of [Base] are never reassigned, so its consumers send no heartbeats.
func (q *Queue) watch(ctx context.Context) {
	every := time.NewTicker(watchEvery)
	defer every.Stop()
	var beat time.Time
	for {
		q.readPaused(ctx)
		if q.cfg.Partition != Base && (beat.IsZero() || time.Since(beat) >= heartbeatEvery) {
			beat = time.Now()
			q.heartbeat(ctx)
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

func (q *Queue) heartbeat(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	if err := q.store.Heartbeat(call, q.cfg.Partition, q.cfg.Instance); err != nil {
		q.failed(ctx, "", "heartbeat", err)
	}
}

// failed reports an error, unless it is the end of ctx.
func (q *Queue) failed(ctx context.Context, kind, during string, err error) {
	if ctx.Err() == nil {
		q.observer.Failed(kind, during, err)
	}
}
