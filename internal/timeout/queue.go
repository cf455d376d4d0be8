package timeout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/shop/internal/platform/backoff"
)

// Queue schedules timers and calls handlers when they are due. It is safe for
// concurrent use.
type Queue struct {
	store    Store
	index    Index
	cfg      Config
	observer Observer
	pushes   chan pushed
	work     context.Context //nolint:containedctx // Of the handlers: it outlives that of Run by the drain.

	every atomic.Int64 // nanoseconds between two look-ahead passes

	mu      sync.Mutex
	kinds   map[string]*worker
	running bool
}

// New returns a queue of the timers in store, which index finds when they are due. It does
// nothing in the background until Run is called.
func New(store Store, index Index, cfg Config) (*Queue, error) {
	if store == nil || index == nil {
		return nil, fmt.Errorf("%w: a queue needs a store and an index", ErrInvalid)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &Queue{store: store, index: index, cfg: cfg.withDefaults(), kinds: map[string]*worker{}}
	q.SetPace(passEvery)
	q.observer = q.cfg.Observer
	q.pushes = make(chan pushed, q.cfg.Entries)
	return q, nil
}

// SetPace changes the time between two look-ahead passes, from the next pass on. The default is 20 s. The window is
// three times as long.
func (q *Queue) SetPace(every time.Duration) { q.every.Store(int64(every)) }

// Handle sets the handler for the timers of a kind in this process. It must be called
// before Run, once per kind. Kinds without a handler are left to other instances. A
// canary checks the handler, and never calls it.
func (q *Queue) Handle(kind string, h Handler, o Options) error {
	if err := errors.Join(checkKind(kind), o.Validate()); err != nil {
		return fmt.Errorf("timeout: handle %q: %w", kind, err)
	}
	if h == nil {
		return fmt.Errorf("timeout: handle %q: %w: give a handler", kind, ErrInvalid)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, duplicates := q.kinds[kind]; duplicates || q.running {
		return fmt.Errorf("timeout: handle %q: %w: register each kind once, before Run", kind, ErrInvalid)
	}
	if !q.cfg.Canary {
		q.kinds[kind] = newWorker(q, kind, h, o)
	}
	return nil
}

// Run writes the index, claims timers and handles them until ctx ends. Then it drains: it claims nothing,
// requeues timers that no handler has begun, and for Config.Drain lets handlers finish. Then it cancels their context,
// and requeues the timers that are still in progress. Handlers that do not return even then are left running, and the observer
// receives how many timers they have. Run returns an error only if it is called twice.
func (q *Queue) Run(ctx context.Context) error {
	q.mu.Lock()
	if q.running {
		q.mu.Unlock()
		return fmt.Errorf("timeout: run: %w: a queue runs once", ErrInvalid)
	}
	q.running = true
	q.mu.Unlock()

	behind, stop := context.WithCancel(context.WithoutCancel(ctx)) // outlives the handlers
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	background.Go(func() { q.runPushes(behind) })
	background.Go(func() { q.runIndex(behind) })
	if q.cfg.Canary || len(q.kinds) == 0 {
		<-ctx.Done()
		return nil
	}
	q.consume(ctx, behind)
	return nil
}

// runIndex restarts the index when it fails.
func (q *Queue) runIndex(ctx context.Context) {
	for ctx.Err() == nil {
		if err := q.index.Run(ctx); err != nil && ctx.Err() == nil {
			q.observer.Failed("", "index", err)
		}
		backoff.Sleep(ctx, time.Second)
	}
}

// consume runs the workers until ctx ends, and drains them.
func (q *Queue) consume(ctx, behind context.Context) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	q.work = work
	var claiming, keeping sync.WaitGroup
	keep, done := context.WithCancel(behind)
	defer keeping.Wait()
	defer done()
	for _, w := range q.kinds {
		keeping.Go(func() { w.inFlight.run(keep) })
		claiming.Go(func() { w.scanOverdue(ctx) })
		claiming.Go(func() { w.lookAhead(ctx) })
		for _, l := range w.loops {
			claiming.Go(func() { l.run(ctx) })
		}
	}
	claiming.Go(func() { q.watch(ctx) })
	<-ctx.Done()
	claiming.Wait()
	q.drain(ctx, cancel)
}

var errDrain = errors.New("timeout: the queue is stopping")

// drain waits for the handlers. Only a handler that ignores its context is left running.
func (q *Queue) drain(ctx context.Context, cancel context.CancelCauseFunc) {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for _, w := range q.kinds {
			w.handling.Wait()
		}
	}()
	grace := time.NewTimer(q.cfg.Drain)
	defer grace.Stop()
	select {
	case <-finished:
		return
	case <-grace.C:
	}
	cancel(errDrain)
	grace.Reset(drainLast)
	select {
	case <-finished:
		return
	case <-grace.C:
	}
	for _, w := range q.kinds {
		items := w.inFlight.all()
		if len(items) > 0 {
			q.observer.Failed(w.kind, "drain", fmt.Errorf("timeout: handlers have %d timers in progress %v after their context was cancelled", len(items), drainLast))
		}
		b := &batch{w: w, stop: ctx, now: time.Now(), loaded: time.Now()}
		b.requeue(slices.DeleteFunc(items, (*item).scanned), func(it *item) time.Time { return it.at })
	}
}

const drainLast = time.Second

// local reports whether the index is in this process alone.
func (q *Queue) local() bool {
	l, ok := q.index.(Local)
	return ok && l.Local()
}

// hasConsumer reports whether an instance may claim the entries of key. A local index of a process
// without a consumer, as on a canary, would keep them forever.
func (q *Queue) hasConsumer(key shardKey) bool {
	if !q.local() {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kinds[key.kind] != nil && key.partition == q.cfg.Partition
}
