package timeout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// notDuePause is the least pause after NotDue, so that a handler with another idea of
// the time is not called without end.
const notDuePause = 10 * time.Millisecond

// backoffMax is the bound of the pause after any failure.
const backoffMax = 5 * time.Minute

var (
	errRetry     = errors.New("the handler asked for another attempt")
	errNoOutcome = errors.New("the handler returned an outcome that is none")
)

// settle does what the handler has decided: first in the database, then in the index, so
// that a crash between the two leaves a hint too many and never one too few.
func (b *batch) settle(group []*item, outcomes []Outcome) {
	b.w.hands.settle(group)
	var finished, buried []*item
	over := 0
	var late []later
	now := b.dbNow()
	why := map[*item]error{}
	for i, o := range outcomes {
		it := group[i]
		switch o.verdict {
		case done:
			finished = append(finished, it)
		case committed:
			over++
		case notDue, again:
			at := o.at
			if o.verdict == again {
				at = now.Add(o.after + rand.N(o.after+1)) // so that those which meet now do not meet again
			}
			if soonest := now.Add(notDuePause); at.Before(soonest) {
				at = soonest
			}
			late = append(late, later{it, ceil(at), it.burned, errors.New(it.row.LastError)})
		default: // retry, or no outcome at all
			err := cmp.Or(o.err, errRetry)
			if o.verdict != retry {
				err = errNoOutcome
			}
			if it.attempt >= b.w.opts.Attempts {
				buried, why[it] = append(buried, it), fmt.Errorf("after %d attempts: %w", it.attempt, err)
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
	b.bury(buried, func(it *item) error { return why[it] })
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
	if bound <= 0 || bound > backoffMax {
		bound = backoffMax
	}
	return rand.N(bound + 1)
}

// finish deletes what is done, unless it has been given a later due time meanwhile.
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

func (b *batch) bury(items []*item, why func(*item) error) {
	if len(items) == 0 {
		return
	}
	rows := make([]Later, len(items))
	for i, it := range items {
		rows[i] = Later{ID: it.id, Due: it.row.Due, At: it.row.Next, Attempt: it.attempt, Error: why(it).Error()}
	}
	ctx, cancel := b.call()
	defer cancel()
	if err := b.w.q.store.Bury(ctx, b.w.kind, rows); err != nil {
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
	b.giveBackAt(only, func(it *item) time.Time { return at[it] })
}

// unsettled gives back what the database did not take: the handler gets it once more.
func (b *batch) unsettled(items []*item, during string, err error) {
	b.w.q.observer.Failed(b.w.kind, during, err)
	b.giveBack(items, b.w.breaker.trip())
}

// giveBack offers items again after a pause, or at once, with no attempt counted.
func (b *batch) giveBack(items []*item, pause time.Duration) {
	if len(items) == 0 {
		return
	}
	b.w.q.observer.Returned(b.w.kind, len(items))
	b.w.hands.settle(items)
	now := time.Now()
	if swept := b.w.hands.claimed(items, ceil(b.dbNow().Add(pause))); len(swept) > 0 {
		ctx, cancel := b.call()
		if err := b.w.q.store.Delay(ctx, b.w.kind, swept); err != nil {
			b.w.q.observer.Failed(b.w.kind, "give back", err) // the claim of the sweep ends by itself
		}
		cancel()
	}
	b.giveBackAt(items, func(it *item) time.Time {
		switch {
		case it.swept():
			return b.dbNow().Add(pause)
		case pause == 0:
			return it.at
		default:
			return it.indexNow(now).Add(pause)
		}
	})
}

// giveBackAt puts items into the index again, each with its moment, for whoever asks first. A hint that is
// there is newer, and stays. It tries once: otherwise the overdue scan finds them.
func (b *batch) giveBackAt(items []*item, at func(*item) time.Time) {
	hints := make([]Hint, len(items))
	for i, it := range items {
		hints[i] = Hint{ID: it.id, At: ceil(at(it))}
	}
	if _, err := b.w.q.putMissing(context.WithoutCancel(b.stop), b.w.kind, hints); err != nil {
		b.w.q.observer.Failed(b.w.kind, "return", err)
	}
}
