package timeout

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	storeLimit = 5 * time.Second        // of one call of the store
	againPause = 100 * time.Millisecond // until a timer that is in progress already is claimed again
)

// batch is the items that share a slot.
type batch struct {
	w      *worker
	stop   context.Context //nolint:containedctx // Done when nothing new may begin.
	now    time.Time       // by the database's clock
	loaded time.Time       // when that was, here
}

// dbNow returns the time by the database's clock, or an earlier one.
func (b *batch) dbNow() time.Time { return b.now.Add(time.Since(b.loaded)) }

// start handles items in a goroutine of their own. It takes over the caller's slot, and the drain of Run
// waits for it.
func (w *worker) start(ctx context.Context, items []*item) {
	w.handling.Go(func() {
		defer w.free()
		b := &batch{w: w, stop: ctx}
		taken, duplicates := w.inFlight.add(items)
		defer w.inFlight.remove(taken)
		b.nack(duplicates, againPause)
		rows, ok := b.load(taken)
		if ok {
			b.handle(rows)
		}
	})
}

// call returns a context for a call of the store that the end of the queue does not cancel.
func (b *batch) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(b.stop), storeLimit)
}

// read returns the rows of items by their IDs. It fails if there are no items, or if the database does not answer. Then
// it requeues the items.
func (b *batch) read(items []*item) (map[string]Row, bool) {
	if len(items) == 0 {
		return nil, false
	}
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.id
	}
	ctx, cancel := b.call()
	defer cancel()
	rows, now, err := b.w.q.store.Load(ctx, b.w.kind, ids)
	if err != nil {
		b.w.q.observer.Failed(b.w.kind, "load", err)
		b.nack(items, b.w.breaker.trip())
		return nil, false
	}
	b.now, b.loaded = now, time.Now()
	byID := make(map[string]Row, len(rows))
	for _, r := range rows {
		byID[r.ID] = r
	}
	return byID, true
}

// load reads the rows of claimed entries and returns the items that are due.
func (b *batch) load(items []*item) ([]*item, bool) {
	byID, ok := b.read(items)
	if !ok {
		return nil, false
	}
	now := b.now
	var ready, early []*item
	for _, it := range items {
		row, stored := byID[it.id]
		it.row, it.counted = row, row.Attempt
		it.attempt = row.Attempt + 1
		switch {
		case !stored || row.State != Open: // the entry had no timer
		case row.Next.After(now):
			early = append(early, it)
		default:
			ready = append(ready, it)
		}
	}
	due, early := b.w.inFlight.yield(early, now)
	ready = append(ready, due...)
	if len(early) > 0 {
		b.w.q.observer.Nacked(b.w.kind, len(early))
	}
	early = b.soon(early, func(it *item) time.Time { return it.row.Next })
	b.requeue(early, func(it *item) time.Time { return it.row.Next.Add(it.skew(b.now, b.loaded)) })
	return ready, len(ready) > 0
}

// handle calls the handler for items that are due: first attempts together, and failed items together.
// An item whose consumer died is handled alone, because it may have killed the process.
func (b *batch) handle(items []*item) {
	var fresh, tried, spent []*item
	var alone [][]*item
	for _, it := range items {
		silent := it.attempt > 1 && it.row.LastError == "" // an attempt ended without an outcome
		switch {
		case it.attempt > b.w.opts.Attempts:
			spent = append(spent, it)
		case silent:
			alone = append(alone, []*item{it})
		case it.attempt > 1:
			tried = append(tried, it)
		default:
			fresh = append(fresh, it)
		}
	}
	b.markDead(spent, func(it *item) error {
		return fmt.Errorf("no answer to %d attempts; the last error was: %s", b.w.opts.Attempts, it.row.LastError)
	})
	for _, group := range append([][]*item{fresh, tried}, alone...) {
		b.run(group)
	}
}

// run calls the handler for a group, and for its halves if the group fails as a whole.
func (b *batch) run(group []*item) {
	if len(group) == 0 {
		return
	}
	if b.stop.Err() != nil {
		b.nack(group, 0)
		return
	}
	began := time.Now()
	outcomes, err := b.invoke(group)
	b.w.q.observer.Handled(b.w.kind, len(group), time.Since(began), err)
	switch {
	case err == nil:
		b.w.breaker.reset()
		b.settle(group, outcomes)
	case errors.Is(err, ErrUnavailable):
		b.nack(group, b.w.breaker.trip())
	case b.w.q.work.Err() != nil: // the drain has cancelled it
		b.nack(group, 0)
	case len(group) > 1:
		b.run(group[:len(group)/2])
		b.run(group[len(group)/2:])
	default:
		b.settle(group, []Outcome{Retry(0, err)})
	}
}

var errHangs = errors.New("timeout: the handler did not return in time")

// invoke calls the handler once.
func (b *batch) invoke(group []*item) (outcomes []Outcome, err error) {
	fired := make([]Fired, len(group))
	now := b.dbNow()
	for i, it := range group {
		fired[i] = Fired{ID: it.id, Due: it.row.Due, Attempt: it.attempt, Trace: it.row.Trace}
		b.w.q.observer.Fired(b.w.kind, now.Sub(it.wanted(now)), fired[i])
	}
	ctx, cancel := context.WithTimeoutCause(b.w.q.work, holdMax, errHangs)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			outcomes, err = nil, fmt.Errorf("timeout: the handler panicked: %v", p)
		}
	}()
	outcomes, err = b.w.handler(ctx, fired)
	if err == nil && len(outcomes) != len(group) {
		err = fmt.Errorf("timeout: the handler returned %d outcomes for %d timers", len(outcomes), len(group))
	}
	return outcomes, err
}

// wanted returns the moment from which the firing delay of an item counts.
func (it *item) wanted(now time.Time) time.Time {
	if it.row.Next.After(now) { // the overdue scan has moved it
		return it.row.Due
	}
	return it.row.Next
}
