package etcdlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"example.com/shop/internal/dlock"
)

// wait is a place on its way to the head of the queue. It watches the last one that
// came before it.
type wait struct {
	*place

	next *watch        // of the last one ahead; and of own, if nobody else is ahead
	wake chan struct{} // next has an event

	timer *time.Timer   // of the next fallback poll
	early time.Duration // what that was set to, while the watch of next may be late
}

// If a commit comes while a watch is created, the watch begins in the past, and etcd serves it up to 100 ms later. So
// a waiter polls firstPoll after it began to watch, and at doubled intervals until lastPoll.
const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 50 * time.Millisecond
)

// cause is why a waiter decides whether it is its turn.
type cause int

const (
	notified cause = iota
	early          // its watch may be late
	overdue        // it has received nothing for long
)

// wait returns nil when nobody is ahead any more. ahead are the last ones that came
// before.
func (p *place) wait(ctx context.Context, ahead []string) error {
	w := &wait{place: p, wake: make(chan struct{}, 1), timer: time.NewTimer(firstPoll)}
	defer w.timer.Stop()
	w.follow(ahead)
	defer func() { p.s.notifier.drop(w.next) }()
	for {
		why := notified
		select {
		case <-w.wake:
		case <-w.timer.C:
			why = w.again()
		case <-ctx.Done():
			return dlock.Ended(ctx)
		case <-p.lease.Done():
			return p.lost()
		}
		if done, err := w.turn(ctx, why); done || err != nil {
			return err
		}
	}
}

// again sets the timer, which has fired, and returns why it has.
func (w *wait) again() cause {
	if w.early >= lastPoll {
		w.timer.Reset(w.pause())
		return overdue
	}
	if w.early *= 2; w.early < lastPoll {
		w.timer.Reset(w.early)
	} else {
		w.timer.Reset(w.pause())
	}
	return early
}

// follow watches the first of ahead from now on. If there is no other, its end is the
// turn of w, unless own has ended before.
func (w *wait) follow(ahead []string) {
	if w.next != nil {
		w.s.notifier.drop(w.next)
	}
	w.next = &watch{key: ahead[0], onEvent: w.signal}
	if len(ahead) == 1 {
		w.next.own = w.own
	}
	w.s.notifier.add(w.next, 0)
	w.early = firstPoll
	w.timer.Reset(firstPoll)
}

// signal wakes the waiter up.
func (w *wait) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// turn decides whether it is the turn of w. No poll is needed if only one waiter was ahead and has left, and the
// watch delivered every event since the last read, in order. Then own was still there.
func (w *wait) turn(ctx context.Context, why cause) (bool, error) {
	for {
		since, next, own := w.s.notifier.state(w.next)
		switch {
		case own > 0:
			return false, w.ended()
		case since > w.polled, next > 0 && w.next.own == "", why != notified:
		case next > 0 && since > 0:
			return true, nil
		default:
			return false, nil
		}
		again, done, err := w.poll(ctx, max(since, next), why != overdue)
		if done || err != nil || !again {
			return done, err
		}
		why = notified
	}
}

// poll asks etcd. If the answer of a member is older than a revision that another member has sent, poll asks once
// more, linearizably. It reports whether to decide again. A poll that fails is repeated after a pause, for as long as
// the lease is considered valid.
func (w *wait) poll(ctx context.Context, received int64, local bool) (again, done bool, err error) {
	ask := func(local bool) (*pb.TxnResponse, error) {
		return w.s.txn(ctx, whoIsLeft(w.s.keys.queue(w.key), w.own, w.next.key, w.revision, local))
	}
	answer, err := ask(local)
	if err == nil && local && answer.Header.Revision < max(received, w.revision) {
		answer, err = ask(false)
	}
	if err != nil {
		return false, false, nil //nolint:nilerr // The pause, ctx or the lease decides.
	}
	if !slices.Contains(names(answer.Responses[0]), w.own) {
		return false, false, w.ended()
	}
	w.polled = answer.Header.Revision
	if answer.Succeeded {
		return true, false, nil
	}
	left := names(answer.Responses[1])
	if len(left) == 0 {
		return false, true, nil
	}
	w.follow(left)
	return false, false, nil
}

// ended ends a place whose key is gone.
func (w *wait) ended() error {
	h := w.held()
	w.s.renewer.Lose(w.owner, &dlock.LostError{Key: h.Key, Fence: h.Fence, Reason: dlock.Expired})
	return w.lost()
}

// watchAfter is how long a key is held before it is watched. A watch costs a third of an acquisition with its
// release, and is of no use to shorter holds. The watch also reports what happened before it began.
const watchAfter = 100 * time.Millisecond

// pause is how long a waiter waits before it polls by itself.
func (p *place) pause() time.Duration {
	longest := p.s.fallbackPoll()
	return longest*4/5 + rand.N(longest/5)
}
