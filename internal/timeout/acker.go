package timeout

import (
	"context"
	"sync"
	"time"

	"example.com/shop/internal/backoff"
)

const (
	ackChunk = 500
	ackLimit = 20_000 // claims that wait for their acknowledgement
	ackPause = 200 * time.Millisecond
)

// acker ends claims of one shard. While one call is under way the claims of the
// next one collect. A claim whose acknowledgement is lost comes back when its
// lease ends, has no row any more, and is acknowledged then.
type acker struct {
	w     *worker
	shard Shard
	wake  chan struct{}

	mu      sync.Mutex
	waiting []Claimed
}

func newAcker(w *worker, s Shard) *acker {
	return &acker{w: w, shard: s, wake: make(chan struct{}, 1)}
}

func (a *acker) add(claims []Claimed) {
	a.mu.Lock()
	if len(a.waiting) < ackLimit {
		a.waiting = append(a.waiting, claims...)
	}
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// run acknowledges until ctx ends, and what is left then once more.
func (a *acker) run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
			if !a.flush(ctx) {
				backoff.Sleep(ctx, ackPause)
			}
		case <-ctx.Done():
			a.flush(ctx)
			return
		}
	}
}

// flush says whether the index took everything.
func (a *acker) flush(ctx context.Context) bool {
	for {
		a.mu.Lock()
		n := min(len(a.waiting), ackChunk)
		chunk := a.waiting[:n:n]
		if a.waiting = a.waiting[n:]; len(a.waiting) == 0 {
			a.waiting = nil
		}
		a.mu.Unlock()
		if n == 0 {
			return true
		}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
		mine, err := a.w.q.index.Ack(call, a.shard, chunk)
		cancel()
		if err != nil {
			a.w.q.observer.Failed(a.w.kind, "ack", err)
			a.add(chunk)
			return false
		}
		a.w.q.observer.Acked(a.w.kind, n, n-mine)
	}
}
