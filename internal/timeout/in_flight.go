package timeout

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	sweepLease = 10 * time.Second // how long a swept timer is left alone
	holdMax    = 5 * time.Minute  // how long a handler may take; one that hangs keeps nothing
)

// item is a timer that this process has in hand: one that it has claimed from the index, or
// one that the sweep has claimed in the database.
type item struct {
	id      string
	at      time.Time // when it was due, as the index had it
	asked   time.Time // by the clock of the index, when it answered the claim; zero for one of the sweep
	got     time.Time // when that answer arrived
	row     Row
	attempt int // this one
	burned  int // attempts that the row counts if this one does not
	since   time.Time
	settled bool // guarded by hands.prolonging
	passed  *Row // of a claimed one: the row as the first sweep has found it meanwhile, and left to this one
}

func (it *item) swept() bool { return it.asked.IsZero() }

// indexNow returns the time by the clock of the index, never later than it is.
func (it *item) indexNow(at time.Time) time.Time { return it.asked.Add(at.Sub(it.got)) }

// skewMin is a difference of clocks that is no more than the way of an answer.
const skewMin = 2 * time.Millisecond

// skew returns how far the clock of the index is ahead of the database's, which showed now
// at the instant at. What the index answers too early it would answer again at once
// if that were not added to the moment.
func (it *item) skew(now, at time.Time) time.Duration {
	if d := it.indexNow(at).Sub(now); d > skewMin {
		return d
	}
	return 0
}

// hands is what a worker has in hand. While something is there it is not handled
// twice at once, the sweep passes it over, and so do the sweeps of others if it was claimed by one.
type hands struct {
	w *worker

	mu    sync.Mutex
	items map[string]*item

	// prolonging has room for one: whoever prolongs rows, or marks items as settled, has it meanwhile.
	prolonging chan struct{}
}

// add takes items in hand, and returns those that are in hand already: who has them
// decides on them, also on those that the sweep has claimed in the database since.
func (h *hands) add(items []*item) (taken, twice []*item) {
	now := time.Now()
	taken = items[:0:0]
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		it.since = now
		if held, ok := h.items[it.id]; ok && now.Sub(held.since) < holdMax {
			if it.swept() && held.passed == nil {
				held.passed = &it.row
			}
			twice = append(twice, it)
			continue
		}
		h.items[it.id] = it
		taken = append(taken, it)
	}
	return taken, twice
}

// yield is asked about items whose rows say that they are to wait. Those which the sweep of
// this process has made wait, and then left to whoever has them in hand, are due
// all the same: they get the row as it was. Those to wait are out of hand then, so that
// a sweep that has claimed them and comes only now keeps them.
func (h *hands) yield(items []*item, now time.Time) (due, wait []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if it.passed != nil && !it.row.Due.After(now) {
			it.row, it.burned = *it.passed, it.passed.Attempt-1
			it.attempt = it.burned + 1
			due = append(due, it)
			continue
		}
		if h.items[it.id] == it {
			delete(h.items, it.id)
		}
		wait = append(wait, it)
	}
	return due, wait
}

// claimed returns those items whose rows a sweep has claimed, with what their rows are to say
// if no attempt counts: what it left to whoever had it in hand is due when it was,
// the others are due at a moment.
func (h *hands) claimed(items []*item, at time.Time) []Later {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rows []Later
	for _, it := range items {
		switch {
		case it.swept():
			rows = append(rows, Later{ID: it.id, Due: it.row.Due, At: at, Attempt: it.burned, Error: it.row.LastError})
		case it.passed != nil:
			p := it.passed
			rows = append(rows, Later{ID: it.id, Due: p.Due, At: p.Next, Attempt: p.Attempt - 1, Error: p.LastError})
		}
	}
	return rows
}

func (h *hands) remove(items []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if h.items[it.id] == it {
			delete(h.items, it.id)
		}
	}
}

func (h *hands) all() []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	items := make([]*item, 0, len(h.items))
	for _, it := range h.items {
		items = append(items, it)
	}
	return items
}

// run prolongs the claims of the sweep, every third of their time, until ctx ends.
func (h *hands) run(ctx context.Context) {
	every := time.NewTicker(sweepLease / 3)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if err := h.prolong(ctx); err != nil {
				h.w.q.failed(ctx, h.w.kind, "prolong", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// prolong lets the next sweep pass over what this process has swept and not settled yet. It keeps
// whoever settles waiting for callLimit at most.
func (h *hands) prolong(ctx context.Context) error {
	items := slices.DeleteFunc(h.all(), func(it *item) bool { return !it.swept() || time.Since(it.since) > holdMax })
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	select {
	case h.prolonging <- struct{}{}:
		defer func() { <-h.prolonging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	items = slices.DeleteFunc(items, func(it *item) bool { return it.settled })
	if len(items) == 0 {
		return nil
	}
	now, err := h.w.q.store.Now(ctx)
	if err != nil {
		return err
	}
	later := make([]Later, len(items))
	for i, it := range items {
		at := ceil(now.Add(sweepLease))
		later[i] = Later{ID: it.id, Due: it.row.Due, At: at, Attempt: it.attempt, Error: it.row.LastError}
	}
	return h.w.q.store.Delay(ctx, h.w.kind, later)
}

// settle comes before the rows of items get what became of them, which has to be the
// last that is written: it waits until none is being prolonged, and none of them will be.
func (h *hands) settle(items []*item) {
	if !slices.ContainsFunc(items, (*item).swept) {
		return // nothing prolongs the others
	}
	h.prolonging <- struct{}{}
	defer func() { <-h.prolonging }()
	for _, it := range items {
		it.settled = true
	}
}
