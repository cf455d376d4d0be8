package timeout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	concurrency = 4 // batches of a kind that a process handles at once
	restMin     = 100 * time.Millisecond
	restMax     = 5 * time.Second
)

// worker handles the timers of one kind in this process.
type worker struct {
	q       *Queue
	kind    string
	handler Handler
	opts    Options

	slots    chan struct{} // one per batch in progress
	loops    []*loop
	inFlight inFlight
	breaker  breaker
	away     atomic.Pointer[time.Time] // since when the index has answered no claim
	paused   atomic.Bool
	handling sync.WaitGroup // batches in progress
}

func newWorker(q *Queue, kind string, h Handler, o Options) *worker {
	w := &worker{q: q, kind: kind, handler: h, opts: o.withDefaults()}
	w.slots = make(chan struct{}, concurrency)
	w.inFlight = inFlight{w: w, items: map[string]*item{}, extending: make(chan struct{}, 1)}
	for _, s := range q.index.Shards(kind, q.cfg.Partition) {
		w.loops = append(w.loops, newLoop(w, s))
	}
	return w
}

// take waits for a free slot, and reports whether it got one before ctx ended.
func (w *worker) take(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case w.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *worker) free() { <-w.slots }

// resting returns how long nothing is to be claimed, because the kind is paused or the breaker is open.
func (w *worker) resting() time.Duration {
	if w.paused.Load() {
		return w.opts.Poll
	}
	return w.breaker.left()
}

// breaker is a circuit breaker for the database and for what handlers depend on. Each failure doubles the pause.
type breaker struct {
	mu    sync.Mutex
	rest  time.Duration
	until time.Time
}

// trip returns the pause until the next try. Failures during a pause do not extend it.
func (b *breaker) trip() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := time.Until(b.until); left > 0 {
		return left
	}
	b.rest = min(restMax, max(restMin, 2*b.rest))
	b.until = time.Now().Add(b.rest)
	return b.rest
}

func (b *breaker) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, time.Until(b.until))
}

func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest, b.until = 0, time.Time{}
}
