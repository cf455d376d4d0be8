package timeout

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	callLimit  = 2 * time.Second // of one call of the index
	awayMin    = 100 * time.Millisecond
	awayMax    = 2 * time.Second
	emptyPause = time.Millisecond // after a claim that was due and got nothing
)

// loop claims timers from one shard of the index and starts their handling. It waits until the moment of the last reply
// or an earlier moment of a message. It waits at most for Options.Poll. Correctness does not depend on messages.
type loop struct {
	w     *worker
	shard Shard
	clock *clock

	at    time.Time // when to ask next
	by    Waker     // why then
	fails int       // claims without an answer, in a row
	empty int       // claims that were due and got nothing, in a row
}

func newLoop(w *worker, s Shard) *loop {
	return &loop{w: w, shard: s, clock: newClock()}
}

// run claims until ctx ends.
func (l *loop) run(ctx context.Context) {
	messages := l.w.q.index.Wake(l.shard)
	wake := time.NewTimer(0)
	defer wake.Stop()
	l.at, l.by = time.Now(), WokenPoll
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case at, open := <-messages:
			if !open {
				messages = nil
			} else if l.sooner(at) {
				wake.Reset(time.Until(l.at))
			}
		case <-wake.C:
			l.claimAll(ctx)
			wake.Reset(time.Until(l.at))
		}
	}
}

// sooner moves the next claim to a moment of the index's clock, and reports whether that is earlier than
// planned. After a failure, and during a pause, the plan stays.
func (l *loop) sooner(at time.Time) bool {
	mine := time.Now().Add(l.clock.until(at))
	if l.fails > 0 || l.w.resting() > 0 || !mine.Before(l.at) {
		return false
	}
	l.at, l.by = mine, WokenMessage
	return true
}

// sleep plans the next claim: after d, or after the poll if that is sooner.
func (l *loop) sleep(d time.Duration, by Waker) {
	poll := l.w.opts.Poll
	poll -= rand.N(poll/5 + 1) // so that instances do not ask at the same time
	if poll < d {
		d, by = poll, WokenPoll
	}
	l.at, l.by = time.Now().Add(d), by
}

// claimAll claims until a claim is not full. Each claim needs a free slot, so timers
// that this process cannot begin with stay in the index.
func (l *loop) claimAll(ctx context.Context) {
	for {
		if rest := l.w.resting(); rest > 0 {
			l.sleep(rest, WokenPoll)
			return
		}
		if !l.w.take(ctx) {
			return
		}
		l.w.q.observer.Woken(l.w.kind, l.by)
		c, err := l.claim(ctx)
		if err != nil {
			l.w.free()
			l.failed(err)
			return
		}
		if len(c.Timers) == 0 {
			l.w.free()
		} else {
			l.empty = 0
			l.w.start(ctx, l.items(c))
		}
		if len(c.Timers) < l.w.opts.Batch {
			l.plan(c)
			return
		}
		l.by = WokenBacklog
	}
}

// claim ignores the end of the queue: the drain requeues what it gets. A call that is cancelled
// would leave its timers to the overdue scan.
func (l *loop) claim(ctx context.Context) (Claim, error) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
	defer cancel()
	c, err := l.w.q.index.Claim(call, l.shard, l.w.opts.Batch)
	if err != nil {
		return c, err
	}
	l.clock.learn(c.Now, time.Now())
	l.w.q.observer.Claimed(l.w.kind, len(c.Timers))
	l.w.q.observer.Offset(l.w.kind, l.clock.offset())
	l.fails = 0
	l.w.away.Store(nil)
	return c, nil
}

// plan sets the next claim after a claim that was not full.
func (l *loop) plan(c Claim) {
	if c.Next.IsZero() {
		l.sleep(l.w.opts.Poll, WokenPoll)
		return
	}
	wait := l.clock.until(c.Next)
	if len(c.Timers) == 0 && wait <= 0 { // due, and not claimed: do not ask in a busy loop
		l.empty = min(l.empty+1, 20)
		wait = emptyPause << l.empty
	}
	l.sleep(max(wait, 0), WokenTimer)
}

func (l *loop) failed(err error) {
	l.w.q.observer.Failed(l.w.kind, "claim", err)
	now := time.Now()
	l.w.away.CompareAndSwap(nil, &now)
	wait := min(awayMax, awayMin<<min(l.fails, 10))
	l.fails++
	l.at, l.by = now.Add(wait/2+rand.N(wait/2+1)), WokenPoll
}

func (l *loop) items(c Claim) []*item {
	items, got := make([]*item, len(c.Timers)), time.Now()
	for i, t := range c.Timers {
		items[i] = &item{id: t.ID, at: t.At, asked: c.Now, got: got}
	}
	return items
}
