package timeout

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	sweepLease = 10 * time.Second // at most: how long a swept timer is left alone
	holdLeases = 10               // leases after which a handler that hangs keeps nothing
)

// item is a timer that this process has in hand: one that the index has lent, or,
// without a loop, one that the sweep has claimed in the database.
type item struct {
	id      string
	claim   Claimed
	loop    *loop
	asked   time.Time // by the clock of the index, when it lent the claim
	got     time.Time // when the claim arrived
	row     Row
	attempt int // this one
	burned  int // attempts that the row counts if this one does not
	since   time.Time
	settled bool // guarded by hands.prolonging
	passed  *Row // of a lent one: the row as the first sweep has found it meanwhile, and left to this one
}

func (it *item) swept() bool { return it.loop == nil }

// indexNow returns the time by the clock of the index, never later than it is.
func (it *item) indexNow(at time.Time) time.Time { return it.asked.Add(at.Sub(it.got)) }

// skewMin is a difference of clocks that is no more than the way of an answer.
const skewMin = 2 * time.Millisecond

// skew returns how far the clock of the index is ahead of the database's, which showed now
// at the instant at. What the index lends too early it would lend again at once
// if that were not added to the moment.
func (it *item) skew(now, at time.Time) time.Duration {
	if d := it.indexNow(at).Sub(now); d > skewMin {
		return d
	}
	return 0
}

// hands is what a worker has in hand. While something is there its lease is
// prolonged, it is not handled twice at once, and the sweep passes it over.
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
		if held, ok := h.items[it.id]; ok && now.Sub(held.since) < h.w.holdMax() {
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
			it.attempt = it.burned + it.claim.Attempt
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

// run prolongs what is in hand, every third of the shorter lease, until ctx ends.
func (h *hands) run(ctx context.Context) {
	every := time.NewTicker(min(h.w.opts.Lease, h.w.sweepLease()) / 3)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			h.prolong(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (h *hands) prolong(ctx context.Context) {
	lent, swept := map[*loop][]Claimed{}, []*item(nil)
	for _, it := range h.all() {
		switch {
		case time.Since(it.since) > h.w.holdMax():
		case it.swept():
			swept = append(swept, it)
		default:
			lent[it.loop] = append(lent[it.loop], it.claim)
		}
	}
	for l, claims := range lent {
		for len(claims) > 0 {
			n := min(len(claims), ackChunk)
			call, cancel := context.WithTimeout(ctx, callLimit)
			if _, err := h.w.q.index.Extend(call, l.shard, claims[:n], h.w.opts.Lease); err != nil {
				h.w.q.observer.Failed(h.w.kind, "extend", err)
			}
			cancel()
			claims = claims[n:]
		}
	}
	if len(swept) == 0 {
		return
	}
	if err := h.postpone(ctx, swept); err != nil {
		h.w.q.observer.Failed(h.w.kind, "extend", err)
	}
}

// postpone lets the next sweep pass over those items that are not settled yet. It keeps whoever settles waiting for
// callLimit at most.
func (h *hands) postpone(ctx context.Context, items []*item) error {
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
		at := ceil(now.Add(h.w.sweepLease()))
		later[i] = Later{ID: it.id, Due: it.row.Due, At: at, Attempt: it.attempt, Error: it.row.LastError}
	}
	return h.w.q.store.Delay(ctx, h.w.kind, later)
}

// settle comes before the rows of items get what became of them, which has to be the
// last that is written: it waits until none is being prolonged, and none of them will be.
func (h *hands) settle(items []*item) {
	if !slices.ContainsFunc(items, (*item).swept) {
		return // it is the index that prolongs the others
	}
	h.prolonging <- struct{}{}
	defer func() { <-h.prolonging }()
	for _, it := range items {
		it.settled = true
	}
}
