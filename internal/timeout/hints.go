package timeout

import (
	"context"
	"sync"
	"time"
)

const (
	flushChunk = 1000            // hints in one call of the index
	flushLimit = 2 * time.Second // of one call

	// Hints of timers that have soonest to go wait for others, for at most flushPause.
	soonest    = 10 * time.Second
	flushPause = 100 * time.Millisecond
)

// shardKey names all shards of a kind and lane.
type shardKey struct{ kind, lane string }

// hint is one change of the index: At zero removes.
type hint struct {
	shardKey
	Hint
}

// flusher carries hints to the index behind the back of whoever scheduled. It never
// makes a caller wait: what does not fit is dropped, and the reconciler puts it later.
// What is not due soon is collected for a moment, since a call costs the index more than a hint.
type flusher struct {
	index    Index
	observer Observer
	limit    int
	wake     chan struct{}                       // buffered: somebody has pushed what is due soon, or a chunk is full
	later    chan struct{}                       // buffered: somebody has pushed
	heard    func(key shardKey) bool             // somebody may claim the hints of key; asked while the queue runs
	pushed   func(key shardKey, first time.Time) // the index has hints of key, the earliest at first

	mu      sync.Mutex
	waiting []hint
}

func newFlusher(index Index, o Observer, limit int, heard func(shardKey) bool, pushed func(shardKey, time.Time)) *flusher {
	return &flusher{
		index: index, observer: o, limit: limit, heard: heard, pushed: pushed,
		wake: make(chan struct{}, 1), later: make(chan struct{}, 1),
	}
}

// push never blocks.
func (f *flusher) push(hints []hint) {
	if len(hints) == 0 {
		return
	}
	f.mu.Lock()
	fits := min(len(hints), f.limit-len(f.waiting))
	f.waiting = append(f.waiting, hints[:fits]...)
	now := len(f.waiting) >= min(flushChunk, f.limit)
	f.mu.Unlock()
	for _, h := range hints[fits:] {
		f.observer.HintsDropped(h.kind, 1)
	}
	soon := time.Now().Add(soonest)
	for _, h := range hints {
		now = now || !h.At.IsZero() && h.At.Before(soon)
	}
	to := f.later
	if now {
		to = f.wake
	}
	select {
	case to <- struct{}{}:
	default:
	}
}

// run flushes until ctx ends, and what is left then once more.
func (f *flusher) run(ctx context.Context) {
	for {
		select {
		case <-f.wake:
		case <-f.later:
			f.collect(ctx)
		case <-ctx.Done():
			f.flush(ctx)
			return
		}
		f.flush(ctx)
	}
}

// collect waits for more hints.
func (f *flusher) collect(ctx context.Context) {
	pause := time.NewTimer(flushPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-f.wake:
	case <-ctx.Done():
	}
}

// flush sends all that waits. While one call is under way the next one's hints
// collect. The end of ctx cuts no call short, but an index that does not answer
// then is not asked again.
func (f *flusher) flush(ctx context.Context) {
	for {
		f.mu.Lock()
		n := min(len(f.waiting), flushChunk)
		chunk := f.waiting[:n:n]
		if f.waiting = f.waiting[n:]; len(f.waiting) == 0 {
			f.waiting = nil
		}
		f.mu.Unlock()
		if n == 0 {
			return
		}
		if !f.send(context.WithoutCancel(ctx), chunk) && ctx.Err() != nil {
			f.dropAll()
			return
		}
	}
}

func (f *flusher) dropAll() {
	f.mu.Lock()
	dropped := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	for _, h := range dropped {
		f.observer.HintsDropped(h.kind, 1)
	}
}

// send keeps the order of changes of one timer by sending only the last one. It says
// whether the index took everything.
func (f *flusher) send(ctx context.Context, chunk []hint) bool {
	type named struct {
		shardKey
		id string
	}
	last := make(map[named]int, len(chunk))
	for i, h := range chunk {
		last[named{h.shardKey, h.ID}] = i
	}
	put, remove := map[shardKey][]Hint{}, map[shardKey][]string{}
	for i, h := range chunk {
		switch {
		case last[named{h.shardKey, h.ID}] != i:
		case h.At.IsZero():
			remove[h.shardKey] = append(remove[h.shardKey], h.ID)
		default:
			put[h.shardKey] = append(put[h.shardKey], h.Hint)
		}
	}
	all := true
	for key, hints := range put {
		if !f.heard(key) {
			continue
		}
		all = f.put(ctx, key, hints) && all
	}
	for key, ids := range remove {
		all = f.remove(ctx, key, ids) && all
	}
	return all
}

func (f *flusher) remove(ctx context.Context, key shardKey, ids []string) bool {
	call, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if err := f.index.Remove(call, key.kind, key.lane, ids); err != nil {
		f.observer.HintsDropped(key.kind, len(ids)) // each fires once more, and finds no row
		f.observer.Failed(key.kind, "remove hints", err)
		return false
	}
	return true
}

func (f *flusher) put(ctx context.Context, key shardKey, hints []Hint) bool {
	call, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if _, err := f.index.Schedule(call, key.kind, key.lane, false, hints); err != nil {
		f.observer.HintsDropped(key.kind, len(hints))
		f.observer.Failed(key.kind, "push hints", err)
		return false
	}
	first := hints[0].At
	for _, h := range hints[1:] {
		if h.At.Before(first) {
			first = h.At
		}
	}
	f.pushed(key, first)
	return true
}
