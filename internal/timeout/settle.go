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

var (
	errRetry     = errors.New("the handler asked for another attempt")
	errNoOutcome = errors.New("the handler returned an outcome that is none")
)

// settle does what the handler has decided: first in the database, then in the index, so
// that a crash between the two leaves a hint too many and never one too few.
func (b *batch) settle(group []*item, outcomes []Outcome) {
	b.w.hands.settle(group)
	var finished, over, buried []*item
	var late []later
	now := b.dbNow()
	why := map[*item]error{}
	for i, o := range outcomes {
		it := group[i]
		switch o.verdict {
		case done:
			finished = append(finished, it)
		case committed:
			over = append(over, it)
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
	b.w.settled(VerdictCommitted, len(over))
	b.ack(over)
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
	if bound <= 0 || bound > b.w.opts.MaxBackoff {
		bound = b.w.opts.MaxBackoff
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
	b.ack(items)
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
	b.ack(items)
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
	b.again(only, func(it *item) time.Time { return at[it] })
}

// unsettled gives back what the database did not take: the handler gets it once more.
func (b *batch) unsettled(items []*item, during string, err error) {
	b.w.q.observer.Failed(b.w.kind, during, err)
	b.giveBack(items, b.w.breaker.trip())
}

func (b *batch) ack(items []*item) {
	claims := map[*loop][]Claimed{}
	for _, it := range items {
		if !it.swept() {
			claims[it.loop] = append(claims[it.loop], it.claim)
		}
	}
	for l, c := range claims {
		l.acks.add(c)
	}
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
			return it.claim.Due
		default:
			return it.indexNow(now).Add(pause)
		}
	})
}

// again has items come back at moments that are worth being precise about.
func (b *batch) again(items []*item, at func(*item) time.Time) {
	b.giveBackAt(items, at)
	for _, it := range items {
		if !it.swept() {
			it.loop.hear(ceil(at(it)))
		}
	}
}

// giveBackAt has the index lend items again at their moments, to whoever asks first.
// A swept one has no claim to give back, and gets a hint.
func (b *batch) giveBackAt(items []*item, at func(*item) time.Time) {
	claims, moments := map[*loop][]Claimed{}, map[*loop][]time.Time{}
	var hints []hint
	for _, it := range items {
		if it.swept() {
			hints = append(hints, hint{shardKey{b.w.kind, it.row.Lane}, Hint{ID: it.id, At: ceil(at(it))}})
			continue
		}
		claims[it.loop] = append(claims[it.loop], it.claim)
		moments[it.loop] = append(moments[it.loop], ceil(at(it)))
	}
	b.w.q.hints.push(hints)
	for l, c := range claims {
		b.w.giveBack(context.WithoutCancel(b.stop), l, c, moments[l])
	}
}

// giveBack tries once: otherwise the leases end by themselves.
func (w *worker) giveBack(ctx context.Context, l *loop, claims []Claimed, at []time.Time) {
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := w.q.index.Return(call, l.shard, claims, at); err != nil {
		w.q.observer.Failed(w.kind, "return", err)
		return
	}
}
