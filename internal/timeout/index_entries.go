package timeout

import (
	"context"
	"sync"
	"time"
)

const (
	flushChunk = 1000            // entries in one call of the index
	flushLimit = 2 * time.Second // of one call

	// An entry that is due within soonest is sent at once. Others are batched for at most flushPause.
	soonest    = 10 * time.Second
	flushPause = 100 * time.Millisecond

	// removePause delays removals. Another instance may have scheduled the timer, and its entry must
	// arrive first: an entry that arrives after its removal would stay.
	removePause = 2 * flushPause
)

// shardKey names all shards of a kind and partition.
type shardKey struct{ kind, partition string }

// timerName names a timer in the index.
type timerName struct {
	shardKey

	id string
}

// change puts an entry into the index, or, if At is zero, removes it.
type change struct {
	shardKey
	Entry
}

func (c change) name() timerName { return timerName{c.shardKey, c.ID} }

// flusher sends changes to the index in the background. A caller never waits: changes that do not
// fit are dropped, and the reconciler repairs them.
//
// The entry of a timer that is due within 10 s is sent at once. Others are batched for 100 ms, because a
// call costs the index more than an entry (EntriesNotDueSoonAreBatched). Removals are delayed by 200 ms,
// so that they arrive after entries that other instances still have to send (RemovalIsSentAfterEntriesOfOtherInstances).
// Otherwise writes of different instances have no order in the index. If two instances move a timer within that time,
// the index may keep the later moment, and the timer waits for the overdue scan.
type flusher struct {
	index       Index
	observer    Observer
	limit       int
	wake        chan struct{}           // buffered: an entry is due soon, or a chunk is full
	later       chan struct{}           // buffered: there are other entries, or removals
	hasConsumer func(key shardKey) bool // whether an instance may claim the entries of key

	mu       sync.Mutex
	waiting  []change                // to be put
	removals map[timerName]time.Time // to be removed, with the time of the request
}

func newFlusher(index Index, o Observer, limit int, hasConsumer func(shardKey) bool) *flusher {
	return &flusher{
		index: index, observer: o, limit: limit, hasConsumer: hasConsumer,
		wake: make(chan struct{}, 1), later: make(chan struct{}, 1), removals: make(map[timerName]time.Time),
	}
}

// push never blocks.
func (f *flusher) push(entries []change) {
	if len(entries) == 0 {
		return
	}
	now := time.Now()
	f.mu.Lock()
	fits := min(len(entries), f.limit-len(f.waiting)-len(f.removals))
	for _, c := range entries[:fits] {
		if c.At.IsZero() {
			f.removals[c.name()] = now
			continue
		}
		delete(f.removals, c.name())
		f.waiting = append(f.waiting, c)
	}
	urgent := len(f.waiting) >= min(flushChunk, f.limit)
	f.mu.Unlock()
	for _, c := range entries[fits:] {
		f.observer.EntriesDropped(c.kind, 1)
	}
	for _, c := range entries {
		urgent = urgent || !c.At.IsZero() && c.At.Before(now.Add(soonest))
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

// run flushes until ctx ends, and then once more.
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

// collect waits for more changes.
func (f *flusher) collect(ctx context.Context) {
	pause := time.NewTimer(flushPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-f.wake:
	case <-ctx.Done():
	}
}

// flush sends the changes that wait now. Further changes wait for the next flush. After the end of ctx it sends
// everything, delayed removals too, and stops at the first call that fails.
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
	if len(f.removals) > 0 {
		signal(f.later)
	}
}

// take returns the next chunk: at most left entries to put, followed by the removals that are not delayed any
// more; or, with all, everything. It returns how many entries to put there are.
func (f *flusher) take(left int, all bool) (chunk []change, puts int) {
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
	for name, since := range f.removals {
		if len(chunk) == flushChunk {
			break
		}
		if all || !since.After(until) {
			chunk = append(chunk, change{shardKey: name.shardKey, Entry: Entry{ID: name.id}})
			delete(f.removals, name)
		}
	}
	return chunk, puts
}

func (f *flusher) dropAll() {
	f.mu.Lock()
	waiting, removals := f.waiting, f.removals
	f.waiting, f.removals = nil, make(map[timerName]time.Time)
	f.mu.Unlock()
	for _, c := range waiting {
		f.observer.EntriesDropped(c.kind, 1)
	}
	for name := range removals {
		f.observer.EntriesDropped(name.kind, 1)
	}
}

// send sends the last change of each timer, and reports whether the index took everything.
func (f *flusher) send(ctx context.Context, chunk []change) bool {
	last := make(map[timerName]int, len(chunk))
	for i, c := range chunk {
		last[c.name()] = i
	}
	put, remove := map[shardKey][]Entry{}, map[shardKey][]string{}
	for i, c := range chunk {
		switch {
		case last[c.name()] != i:
		case c.At.IsZero():
			remove[c.shardKey] = append(remove[c.shardKey], c.ID)
		default:
			put[c.shardKey] = append(put[c.shardKey], c.Entry)
		}
	}
	all := true
	for key, entries := range put {
		if f.hasConsumer(key) {
			all = f.call(ctx, key, "put entries", len(entries), func(ctx context.Context) error {
				_, err := f.index.Schedule(ctx, key.kind, key.partition, false, entries)
				return err
			}) && all
		}
	}
	for key, ids := range remove { // a claim of an entry that stays finds no row
		all = f.call(ctx, key, "remove entries", len(ids), func(ctx context.Context) error {
			return f.index.Remove(ctx, key.kind, key.partition, ids)
		}) && all
	}
	return all
}

// call sends n changes, and reports whether the index took them.
func (f *flusher) call(ctx context.Context, key shardKey, what string, n int, send func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	err := send(ctx)
	if err != nil {
		f.observer.EntriesDropped(key.kind, n)
		f.observer.Failed(key.kind, what, err)
	}
	return err == nil
}
