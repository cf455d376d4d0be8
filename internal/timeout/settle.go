package timeout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// notDuePause is the least pause after NotDue, so that a handler with another clock
// is not called in a busy loop.
const notDuePause = 10 * time.Millisecond

// LongestPause is the bound of the pause after a failure, unless the handler asks for another one by [Retry].
const LongestPause = 5 * time.Minute

var (
	errRetry     = errors.New("the handler asked for another attempt")
	errNoOutcome = errors.New("the handler returned an outcome that is none")
)

// settle writes the outcomes: first to the database, then to the index.
func (b *batch) settle(group []*item, outcomes []Outcome) {
	b.w.inFlight.settle(group)
	var finished, dead []*item
	over := 0
	var late []later
	now := b.dbNow()
	why := map[*item]error{}
	for i, o := range outcomes {
		it := group[i]
		switch o.verdict {
		case VerdictDone:
			finished = append(finished, it)
		case VerdictCommitted:
			over++
		case VerdictNotDue, verdictAgain:
			at := o.at
			if o.verdict == verdictAgain {
				at = now.Add(o.after + rand.N(o.after+1)) // so that timers that collide now do not collide again
			}
			if soonest := now.Add(notDuePause); at.Before(soonest) {
				at = soonest
			}
			late = append(late, later{it, ceil(at), it.counted, errors.New(it.row.LastError)})
		default: // retry, or no outcome at all
			err := cmp.Or(o.err, errRetry)
			if o.verdict != VerdictRetry {
				err = errNoOutcome
			}
			if it.attempt >= b.w.opts.Attempts {
				dead, why[it] = append(dead, it), fmt.Errorf("after %d attempts: %w", it.attempt, err)
				continue
			}
			wait := o.after
			if wait <= 0 {
				wait = b.backoff(it.attempt)
			}
			late = append(late, later{it, ceil(now.Add(wait)), it.attempt, err})
		}
	}
	b.finish(finished)
	b.w.settled(VerdictCommitted, over)
	b.markDead(dead, func(it *item) error { return why[it] })
	b.delay(late)
}

func (w *worker) settled(v Verdict, n int) {
	if n > 0 {
		w.q.observer.Settled(w.kind, v, n)
	}
}

// backoff is full jitter under a bound that doubles with each attempt.
func (b *batch) backoff(attempt int) time.Duration {
	bound := b.w.opts.Backoff << min(attempt-1, 30)
	if bound <= 0 || bound > LongestPause {
		bound = LongestPause
	}
	return rand.N(bound + 1)
}

// finish deletes timers, unless they have got a later due time meanwhile.
func (b *batch) finish(items []*item) {
	if len(items) == 0 {
		return
	}
	ids, due := make([]string, len(items)), make([]time.Time, len(items))
	for i, it := range items {
		ids[i], due[i] = it.id, it.row.Due
	}
	ctx, cancel := b.call()
	defer cancel()
	if _, err := b.w.q.store.Delete(ctx, nil, b.w.kind, ids, due); err != nil {
		b.unsettled(items, "delete", err)
		return
	}
	b.w.settled(VerdictDone, len(items))
}

func (b *batch) markDead(items []*item, why func(*item) error) {
	if len(items) == 0 {
		return
	}
	rows := make([]Later, len(items))
	for i, it := range items {
		rows[i] = Later{ID: it.id, Due: it.row.Due, At: it.row.Next, Attempt: it.attempt, Error: why(it).Error()}
	}
	ctx, cancel := b.call()
	defer cancel()
	if err := b.w.q.store.MarkDead(ctx, b.w.kind, rows); err != nil {
		b.unsettled(items, "bury", err)
		return
	}
	b.w.settled(VerdictDead, len(items))
}

// later is an item that is to be tried again.
type later struct {
	*item
	at    time.Time
	count int // attempts that its row counts from now on
	err   error
}

func (b *batch) delay(items []later) {
	if len(items) == 0 {
		return
	}
	rows, failed := make([]Later, len(items)), 0
	only := make([]*item, len(items))
	at := make(map[*item]time.Time, len(items))
	for i, it := range items {
		rows[i] = Later{ID: it.id, Due: it.row.Due, At: it.at, Attempt: it.count, Error: it.err.Error()}
		only[i], at[it.item] = it.item, it.at
		if it.count == it.attempt {
			failed++
		}
	}
	ctx, cancel := b.call()
	defer cancel()
	if err := b.w.q.store.Delay(ctx, b.w.kind, rows); err != nil {
		b.unsettled(only, "delay", err)
		return
	}
	b.w.settled(VerdictRetry, failed)
	b.w.settled(VerdictNotDue, len(items)-failed)
	b.requeue(b.soon(only, func(it *item) time.Time { return at[it] }), func(it *item) time.Time { return at[it] })
}

// soon returns the items that are due in the window. The passes put the others.
func (b *batch) soon(items []*item, at func(*item) time.Time) []*item {
	now := b.dbNow()
	return slices.DeleteFunc(items, func(it *item) bool { return !b.w.q.soon(at(it), now) })
}

// unsettled requeues items whose outcome the database did not take. The handler gets them again.
func (b *batch) unsettled(items []*item, during string, err error) {
	b.w.q.observer.Failed(b.w.kind, during, err)
	b.nack(items, b.w.breaker.trip())
}

// nack requeues unhandled items after a pause, or at once. No attempt counts.
func (b *batch) nack(items []*item, pause time.Duration) {
	if len(items) == 0 {
		return
	}
	b.w.q.observer.Nacked(b.w.kind, len(items))
	b.w.inFlight.settle(items)
	now := time.Now()
	if scanned := b.w.inFlight.claimed(items, ceil(b.dbNow().Add(pause))); len(scanned) > 0 {
		ctx, cancel := b.call()
		if err := b.w.q.store.Delay(ctx, b.w.kind, scanned); err != nil {
			b.w.q.observer.Failed(b.w.kind, "nack", err) // the claim of the overdue scan expires
		}
		cancel()
	}
	b.requeue(items, func(it *item) time.Time {
		switch {
		case it.scanned():
			return b.dbNow().Add(pause)
		case pause == 0:
			return it.at
		default:
			return it.indexNow(now).Add(pause)
		}
	})
}

// requeue puts items back into the index, each with its moment. It tries once. After a failure the overdue scan finds
// the timers.
func (b *batch) requeue(items []*item, at func(*item) time.Time) {
	entries := make([]Entry, len(items))
	for i, it := range items {
		entries[i] = Entry{ID: it.id, At: ceil(at(it))}
	}
	if err := b.w.q.put(context.WithoutCancel(b.stop), b.w.kind, b.w.q.cfg.Partition, entries); err != nil {
		b.w.q.observer.Failed(b.w.kind, "requeue", err)
	}
}
