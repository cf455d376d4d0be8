package order

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A caller whose time is over leaves its transaction after leaveGrace. The transaction is stopped when all its callers have left.
func TestTransactionOutlivesThoseWhoGiveUp(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		ctx, giveUp := context.WithCancelCause(r.Context())
		later, giveUpLater := context.WithCancelCause(r.Context())
		one, two := r.do(ctx, "1", "a"), r.do(ctx, "2", "a")
		three := r.bounded(ctx, time.Second, "3")
		four := r.do(later, "4", "a")
		release()
		c := r.commit("1 2 3 4")
		time.Sleep(time.Minute)
		r.waits(three)
		giveUp(errGone)
		gaveUp := time.Now()
		for _, done := range []<-chan error{one, two, three} {
			if err := <-done; !errors.Is(err, errGone) || !errors.Is(err, errLeft) || !errors.Is(err, ErrOutcomeUnknown) {
				r.Errorf("the answer is %v, want that it is unknown", err)
			}
		}
		if d := time.Since(gaveUp); d != leaveGrace {
			r.Errorf("they have left after %v, want %v", d, leaveGrace)
		}
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		r.waits(four)
		giveUpLater(errGone)
		time.Sleep(leaveGrace)
		r.ended(four, errLeft)
		if !errors.Is(context.Cause(c.ctx), errGone) {
			r.Errorf("the work goes on for nobody: %v", context.Cause(c.ctx))
		}
		c.answer <- errors.New("stopped")
	})
}

// A transaction of several batches is stopped when the callers of all of them have left.
func TestSharedTransactionEndsWithItsLastCaller(t *testing.T) {
	bubble(t, inRounds, func(r *rig) {
		end := r.fill()
		ctx, giveUp := context.WithCancelCause(r.Context())
		later, giveUpLater := context.WithCancelCause(r.Context())
		one, two, three := r.do(ctx, "1", "conditional/a"), r.do(ctx, "2", "conditional/b"), r.do(later, "3", "conditional/b")
		end()
		c := r.commit("1 | 2 | 3")
		giveUp(errGone)
		time.Sleep(leaveGrace)
		r.ended(one, errGone, errLeft)
		r.ended(two, errGone, errLeft)
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		giveUpLater(errGone)
		<-c.ctx.Done()
		c.answer <- context.Cause(c.ctx)
		r.ended(three, errGone)
	})
}

// A transaction that ends with the time of its last caller still says what became of its orders.
func TestStoppedTransactionStillAnswers(t *testing.T) {
	bothLeases(t, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, "1", "a")
		c := r.commit("1")
		giveUp(errGone)
		<-c.ctx.Done()
		stopped := errors.New("stopped")
		c.answer <- stopped
		if err := <-done; !errors.Is(err, errGone) || !errors.Is(err, stopped) || errors.Is(err, errLeft) {
			r.Errorf("the answer is %v", err)
		}
	})
}

// A caller whose time is over does not wait for the end of a long transaction that others want. Its order stays in it.
func TestLongTransactionKeepsNoCaller(t *testing.T) {
	bothLeases(t, func(r *rig) {
		release := r.hold("a")
		ctx, giveUp := context.WithCancelCause(r.Context())
		one, two := r.do(ctx, "1", "a"), r.do(r.Context(), "2", "a")
		release()
		c := r.commit("1 2")
		giveUp(errGone)
		began := time.Now()
		err := <-one
		if d := time.Since(began); !errors.Is(err, errLeft) || !errors.Is(err, errGone) || d != leaveGrace {
			r.Errorf("%v after %v, want that the transaction continues", err, d)
		}
		r.waits(two)
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		c.answer <- nil
		r.ended(two, nil)
	})
}

// An order that was committed in time is committed, though its caller has gone.
func TestSuccessIsReportedToThoseWhoGaveUp(t *testing.T) {
	bothLeases(t, func(r *rig) {
		ctx, giveUp := context.WithCancel(r.Context())
		done := r.do(ctx, "1", "a")
		c := r.commit("1")
		giveUp()
		c.answer <- nil
		r.ended(done, nil)
	})
}

// A caller that gives up between two attempts receives the error of the first one, whose outcome is unknown.
func TestCallerThatLeavesGetsTheLastError(t *testing.T) {
	bothLeases(t, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, "1", "a")
		c := r.commit("1")
		other := r.holdNext("a")
		c.answer <- ErrOutcomeUnknown
		release := <-other
		r.waits(done)
		giveUp(errGone)
		r.ended(done, ErrOutcomeUnknown, errGone)
		release()
	})
}

// After its maximum wait, a caller still waits for the outcome of an attempt, until its context ends.
func TestCallerWaitsForTheOutcomeOfItsAttempt(t *testing.T) {
	bothLeases(t, func(r *rig) {
		const wait = 100 * time.Millisecond
		ctx, giveUp := context.WithCancelCause(r.Context())
		release := r.hold("a")
		stays, goes := r.bounded(r.Context(), wait, "0"), r.bounded(ctx, wait, "1")
		release()
		one := r.commit("0 1")
		time.Sleep(2 * wait)
		one.answer <- ErrOutcomeUnknown
		two := r.commit("0 1")
		giveUp(errGone)
		r.waits(goes)
		two.answer <- ErrOutcomeUnknown
		r.ended(goes, ErrOutcomeUnknown, errGone)
		r.commit("0").answer <- nil
		r.ended(stays, nil)
	})
}

// It is the same when the maximum wait ends after such an attempt.
func TestUnknownOutcomeOutlastsTheMaximumWait(t *testing.T) {
	bothLeases(t, func(r *rig) {
		const wait = 100 * time.Millisecond
		done := r.bounded(r.Context(), wait, "1")
		c := r.commit("1")
		other := r.holdNext("a")
		c.answer <- ErrOutcomeUnknown
		release := <-other
		time.Sleep(2 * wait)
		r.waits(done)
		release()
		r.commit("1").answer <- nil
		r.ended(done, nil)
	})
}
