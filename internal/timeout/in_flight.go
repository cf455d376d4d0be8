package timeout

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	scanLease = 10 * time.Second // how long the overdue scan claims a timer for
	holdMax   = 5 * time.Minute  // how long a handler may take; a handler that hangs keeps nothing
)

// item is a timer in progress: claimed from the index, or by the overdue scan in the database.
type item struct {
	id         string
	at         time.Time // of its index entry
	asked      time.Time // when the index answered the claim, by its clock; zero: claimed by the overdue scan
	got        time.Time // when that reply arrived
	row        Row
	attempt    int // the number of this attempt
	counted    int // attempts that the row counts if this one does not
	since      time.Time
	settled    bool // guarded by inFlight.extending
	scannedRow *Row // claimed from the index: the row that the overdue scan claimed meanwhile and left to this item
}

func (it *item) scanned() bool { return it.asked.IsZero() }

// indexNow returns the time by the clock of the index, or an earlier one.
func (it *item) indexNow(at time.Time) time.Time { return it.asked.Add(at.Sub(it.got)) }

// skewMin is a difference of clocks that the latency of a reply explains.
const skewMin = 2 * time.Millisecond

// skew returns how far the clock of the index is ahead of the database's, which showed now
// at the instant at. An entry that was claimed too early is put back that much later. Otherwise
// it would be claimed again at once.
func (it *item) skew(now, at time.Time) time.Duration {
	if d := it.indexNow(at).Sub(now); d > skewMin {
		return d
	}
	return 0
}

// inFlight has the timers in progress of a worker. They are not handled twice at the same time, and
// the overdue scan of this process skips them. Scans of other processes skip those that a scan has claimed.
type inFlight struct {
	w *worker

	mu    sync.Mutex
	items map[string]*item

	// extending is a mutex that a context can end the wait for. It is held while rows are extended, and
	// while items are marked as settled.
	extending chan struct{}
}

// add adds items, and returns those that are in progress already. The goroutine that handles the first
// item decides, also about a row that the overdue scan has claimed since.
func (h *inFlight) add(items []*item) (taken, duplicates []*item) {
	now := time.Now()
	taken = items[:0:0]
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		it.since = now
		if held, ok := h.items[it.id]; ok && now.Sub(held.since) < holdMax {
			if it.scanned() && held.scannedRow == nil {
				held.scannedRow = &it.row
			}
			duplicates = append(duplicates, it)
			continue
		}
		h.items[it.id] = it
		taken = append(taken, it)
	}
	return taken, duplicates
}

// yield splits items whose rows have a Next in the future. If this process's overdue scan has claimed the row and left
// it to the item, the item is due and gets the previous row. Other items wait. They are not in progress any more, so a
// scan that claims their rows handles them.
func (h *inFlight) yield(items []*item, now time.Time) (due, wait []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if it.scannedRow != nil && !it.row.Due.After(now) {
			it.row, it.counted = *it.scannedRow, it.scannedRow.Attempt-1
			it.attempt = it.counted + 1
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

// claimed returns the items whose rows the overdue scan has claimed, as they are to be stored if no attempt
// counts. A row that the scan left to an item gets its previous Next, the others a moment.
func (h *inFlight) claimed(items []*item, at time.Time) []Later {
	h.mu.Lock()
	defer h.mu.Unlock()
	var rows []Later
	for _, it := range items {
		switch {
		case it.scanned():
			rows = append(rows, Later{ID: it.id, Due: it.row.Due, At: at, Attempt: it.counted, Error: it.row.LastError})
		case it.scannedRow != nil:
			p := it.scannedRow
			rows = append(rows, Later{ID: it.id, Due: p.Due, At: p.Next, Attempt: p.Attempt - 1, Error: p.LastError})
		}
	}
	return rows
}

func (h *inFlight) remove(items []*item) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if h.items[it.id] == it {
			delete(h.items, it.id)
		}
	}
}

func (h *inFlight) all() []*item {
	h.mu.Lock()
	defer h.mu.Unlock()
	items := make([]*item, 0, len(h.items))
	for _, it := range h.items {
		items = append(items, it)
	}
	return items
}

// run extends the claims of the overdue scan until ctx ends.
func (h *inFlight) run(ctx context.Context) {
	every := time.NewTicker(scanLease / 3)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if err := h.extend(ctx); err != nil {
				h.w.q.failed(ctx, h.w.kind, "extend", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// extend extends the claims of the overdue scan that are not settled yet. It delays settle for callLimit at
// most.
func (h *inFlight) extend(ctx context.Context) error {
	items := slices.DeleteFunc(h.all(), func(it *item) bool { return !it.scanned() || time.Since(it.since) > holdMax })
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	select {
	case h.extending <- struct{}{}:
		defer func() { <-h.extending }()
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
		at := ceil(now.Add(scanLease))
		later[i] = Later{ID: it.id, Due: it.row.Due, At: at, Attempt: it.attempt, Error: it.row.LastError}
	}
	return h.w.q.store.Delay(ctx, h.w.kind, later)
}

// settle is called before the outcomes of items are written. It waits until no row is being extended. From
// then on none of the items is extended, so that the outcome is the last write.
func (h *inFlight) settle(items []*item) {
	if !slices.ContainsFunc(items, (*item).scanned) {
		return // nothing extends the others
	}
	h.extending <- struct{}{}
	defer func() { <-h.extending }()
	for _, it := range items {
		it.settled = true
	}
}
