package timeout

import (
	"context"
	"sync"
	"time"
)

const (
	flushChunk = 1000            // hints in one call of the index
	flushLimit = 2 * time.Second // of one call

	// A hint that is due within soonest is sent at once. Others are collected, for at most flushPause.
	soonest    = 10 * time.Second
	flushPause = 100 * time.Millisecond

	// removePause is how long a removal is kept back. Who has scheduled the timer may be another
	// instance, whose hint is to be there first: what comes after its removal stays for nothing.
	removePause = 2 * flushPause
)

// shardKey names all shards of a kind and lane.
type shardKey struct{ kind, lane string }

// timerName names a timer in the index.
type timerName struct {
	shardKey

	id string
}

// hint is one change of the index: At zero removes.
type hint struct {
	shardKey
	Hint
}

func (h hint) name() timerName { return timerName{h.shardKey, h.ID} }

// flusher carries hints to the index behind the back of whoever scheduled. It never
// makes a caller wait: what does not fit is dropped, and the reconciler puts it later.
// What is not due soon is collected for a moment, since a call costs the index more than a hint,
// and removals are kept back for longer than that.
type flusher struct {
	index    Index
	observer Observer
	limit    int
	wake     chan struct{}           // buffered: somebody has pushed what is due soon, or a chunk is full
	later    chan struct{}           // buffered: somebody has pushed what has time, or removals are kept back
	heard    func(key shardKey) bool // somebody may claim the hints of key; asked while the queue runs

	mu      sync.Mutex
	waiting []hint                  // to be put
	parting map[timerName]time.Time // to be removed, and since when
}

func newFlusher(index Index, o Observer, limit int, heard func(shardKey) bool) *flusher {
	return &flusher{
		index: index, observer: o, limit: limit, heard: heard,
		wake: make(chan struct{}, 1), later: make(chan struct{}, 1), parting: make(map[timerName]time.Time),
	}
}

// push never blocks.
func (f *flusher) push(hints []hint) {
	if len(hints) == 0 {
		return
	}
	now := time.Now()
	f.mu.Lock()
	fits := min(len(hints), f.limit-len(f.waiting)-len(f.parting))
	for _, h := range hints[:fits] {
		if h.At.IsZero() {
			f.parting[h.name()] = now
			continue
		}
		delete(f.parting, h.name())
		f.waiting = append(f.waiting, h)
	}
	urgent := len(f.waiting) >= min(flushChunk, f.limit)
	f.mu.Unlock()
	for _, h := range hints[fits:] {
		f.observer.HintsDropped(h.kind, 1)
	}
	for _, h := range hints {
		urgent = urgent || !h.At.IsZero() && h.At.Before(now.Add(soonest))
	}
	if urgent {
		signal(f.wake)
	} else {
		signal(f.later)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
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

// flush sends what waits now. While one call is under way the next one's hints
// collect. The end of ctx cuts no call short, but an index that does not answer
// then is not asked again; and nothing is kept back any more.
func (f *flusher) flush(ctx context.Context) {
	all := ctx.Err() != nil
	f.mu.Lock()
	left := len(f.waiting)
	f.mu.Unlock()
	for {
		chunk, puts := f.take(left, all)
		if len(chunk) == 0 {
			break
		}
		left -= puts
		if !f.send(context.WithoutCancel(ctx), chunk) && ctx.Err() != nil {
			f.dropAll()
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.parting) > 0 {
		signal(f.later)
	}
}

// take returns the next chunk: at most left of those that are to be put, and behind them the removals
// whose time has come; or whatever there is. It says how many are to be put.
func (f *flusher) take(left int, all bool) (chunk []hint, puts int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all {
		left = len(f.waiting)
	}
	puts = min(left, flushChunk)
	chunk = f.waiting[:puts:puts]
	if f.waiting = f.waiting[puts:]; len(f.waiting) == 0 {
		f.waiting = nil
	}
	until := time.Now().Add(-removePause)
	for name, since := range f.parting {
		if len(chunk) == flushChunk {
			break
		}
		if all || !since.After(until) {
			chunk = append(chunk, hint{shardKey: name.shardKey, Hint: Hint{ID: name.id}})
			delete(f.parting, name)
		}
	}
	return chunk, puts
}

func (f *flusher) dropAll() {
	f.mu.Lock()
	waiting, parting := f.waiting, f.parting
	f.waiting, f.parting = nil, make(map[timerName]time.Time)
	f.mu.Unlock()
	for _, h := range waiting {
		f.observer.HintsDropped(h.kind, 1)
	}
	for name := range parting {
		f.observer.HintsDropped(name.kind, 1)
	}
}

// send keeps the order of changes of one timer by sending only the last one. It says
// whether the index took everything.
func (f *flusher) send(ctx context.Context, chunk []hint) bool {
	last := make(map[timerName]int, len(chunk))
	for i, h := range chunk {
		last[h.name()] = i
	}
	put, remove := map[shardKey][]Hint{}, map[shardKey][]string{}
	for i, h := range chunk {
		switch {
		case last[h.name()] != i:
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
	return true
}
