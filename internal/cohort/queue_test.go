package cohort_test

import (
	"context"
	"testing"
	"testing/synctest"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
)

// A caller that gives up leaves the queue, and with the last caller the instance stops waiting for the lease.
func TestACallerThatGivesUpLeavesTheQueue(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		first, stays := r.do(ctx, 1), r.do(r.Context(), 2)
		giveUp(errBad)
		r.ended(first, errBad)
		r.waits(stays)
		release()
		r.commit(2).answer <- nil
		r.ended(stays, nil)

		release = r.hold()
		ctx, giveUp = context.WithCancelCause(r.Context())
		last := r.do(ctx, 3)
		if s, _ := r.lock.Inspect(ctx, "a"); s.Waiters != 1 {
			r.Errorf("%d wait for the lease", s.Waiters)
		}
		giveUp(errBad)
		r.ended(last, errBad)
		if s, _ := r.lock.Inspect(r.Context(), "a"); s.Waiters != 0 {
			r.Errorf("%d wait for the lease of nobody", s.Waiters)
		}
		again := r.do(r.Context(), 4)
		release()
		r.commit(4).answer <- nil
		r.ended(again, nil)
		r.ended(r.do(ctx, 5), errBad) // and does not join with a dead context
		r.nobody()
	})
}

// Many who give up leave nothing behind, though nobody is served.
func TestTheLineDoesNotGrowByThoseWhoLeft(t *testing.T) {
	bubble(t, config{MaxQueue: 10}, func(r *rig) {
		release := r.hold()
		stays := r.do(r.Context(), 0)
		for range 100 {
			ctx, giveUp := context.WithCancel(r.Context())
			done := r.do(ctx, 1)
			giveUp()
			r.ended(done, context.Canceled)
			if a, b := r.waiting("a"), r.waiting("b"); a != 1 || b != 0 {
				r.Fatalf("%d wait for a, %d for b, want 1 and 0", a, b)
			}
		}
		release()
		c := r.commit(0)
		if n := r.waiting("a"); n != 0 {
			r.Errorf("%d wait while their batch is being committed", n)
		}
		c.answer <- nil
		r.ended(stays, nil)
	})
}

func TestAFullLineRefuses(t *testing.T) {
	bubble(t, config{MaxQueue: 2}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancel(r.Context())
		first, second := r.do(ctx, 1), r.do(r.Context(), 2)
		r.ended(r.do(r.Context(), 3), cohort.ErrFull)
		giveUp()
		r.ended(first, context.Canceled)
		third := r.do(r.Context(), 4)
		r.waits(third)
		release()
		r.commit(2, 4).answer <- nil
		r.ended(second, nil)
		r.ended(third, nil)
	})
}

// A look refuses those who were there before it, one by one, without a lease, and never those
// whose fate an attempt has left open.
func TestRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks, verdict := make(chan struct{}), make(chan func(int) error)
		r := newRig(t, config{Refuse: func(context.Context, string) func(int) error {
			looks <- struct{}{}
			return <-verdict
		}})
		odd := func(i int) error {
			if i%2 == 1 {
				return errBad
			}
			return nil
		}
		release := r.hold()
		before := r.do(t.Context(), 1)
		<-looks
		after := r.all(2, 5)
		verdict <- odd
		r.ended(before, errBad)
		r.waits(after[5])
		later := r.do(t.Context(), 3)
		release()
		c := r.commit(2, 5, 3)
		c.answer <- dlock.ErrFenced
		<-looks
		verdict <- odd
		r.waits(later) // though it is odd, and was there
		c = r.commit(2, 5, 3)
		third := r.do(t.Context(), 7)
		c.answer <- nil
		r.ended(after[2], nil)
		r.ended(after[5], nil)
		r.ended(later, nil)
		<-looks // before the second batch of a lease as well
		verdict <- odd
		r.ended(third, errBad)
		alone := r.all(9)
		<-looks
		release = r.hold()
		verdict <- odd
		r.ended(alone[9], errBad) // though somebody else has the lease
		release()
		if err := r.group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
