package cohort_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A caller that gives up between two attempts receives the error of the first one, whose outcome is unknown.
func TestACallerThatLeavesGetsTheLastError(t *testing.T) {
	unknown := errors.New("unknown")
	bubble(t, config{Retry: func(err error) bool { return errors.Is(err, unknown) }}, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		var release func()
		held := make(chan struct{})
		go func() { release = r.hold(); close(held) }()
		synctest.Wait()
		c.answer <- unknown
		<-held
		r.waits(done)
		giveUp(errBad)
		r.ended(done, unknown)
		release()
	})
}

// After its maximum wait, a caller still waits for the outcome of an attempt, until its context ends.
func TestACallerWaitsForTheOutcomeOfItsAttempt(t *testing.T) {
	unknown := errors.New("unknown")
	is := func(err error) bool { return errors.Is(err, unknown) }
	bubble(t, config{Retry: is, Unknown: is}, func(r *rig) {
		waiting, over := context.WithCancelCause(r.Context())
		ctx, giveUp := context.WithCancelCause(r.Context())
		release := r.hold()
		done := make(map[int]<-chan error)
		for item, ctx := range []context.Context{r.Context(), ctx} {
			answer := make(chan error, 1)
			done[item] = answer
			go func() { answer <- r.group.Do(ctx, waiting, "a", item) }()
			synctest.Wait()
		}
		release()
		one := r.commit(0, 1)
		over(errBad)
		synctest.Wait()
		one.answer <- unknown
		two := r.commit(0, 1)
		giveUp(errBad)
		r.waits(done[1])
		two.answer <- unknown
		r.ended(done[1], unknown)
		r.commit(0).answer <- nil
		r.ended(done[0], nil)
	})
}

// It is the same when the time in the line ends after such an attempt.
func TestAnUnknownOutcomeOutlastsTheMaximumWait(t *testing.T) {
	unknown := errors.New("unknown")
	is := func(err error) bool { return errors.Is(err, unknown) }
	bubble(t, config{Retry: is, Unknown: is}, func(r *rig) {
		waiting, over := context.WithCancelCause(r.Context())
		done := make(chan error, 1)
		go func() { done <- r.group.Do(r.Context(), waiting, "a", 1) }()
		c := r.commit(1)
		var release func()
		held := make(chan struct{})
		go func() { release = r.hold(); close(held) }()
		synctest.Wait()
		c.answer <- unknown
		<-held
		over(errBad)
		r.waits(done)
		release()
		r.commit(1).answer <- nil
		r.ended(done, nil)
	})
}
