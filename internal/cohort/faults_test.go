package cohort_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
)

// The loss of the lease ends the work, which is done again under another one.
func TestALostLeaseIsReplaced(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		done := r.do(r.Context(), 1)
		one := r.commit(1)
		if err := r.lock.ForceRelease(r.Context(), "a"); err != nil {
			r.Fatal(err)
		}
		<-one.ctx.Done()
		if !errors.Is(context.Cause(one.ctx), dlock.ErrLost) {
			r.Error(context.Cause(one.ctx))
		}
		one.answer <- errBad // whatever it is
		two := r.commit(1)
		if two.fence.Token <= one.fence.Token {
			r.Errorf("fence %v after %v", two.fence, one.fence)
		}
		two.answer <- nil
		r.ended(done, nil)
	})
}

// A lock service that is away is the answer to all who waited for it, and not to those who come
// later.
func TestALockServiceThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, calls: make(chan call)}
		answers := make(chan error)
		r.group = cohort.New(config{
			Hold: func(ctx context.Context, _ string, fn func(context.Context, dlock.Fence) error) error {
				if err := <-answers; err != nil {
					return err
				}
				return fn(ctx, dlock.Fence{Token: 1})
			},
			Commit: func(context.Context, string, dlock.Fence, []int) error { return nil },
		})
		before := r.do(t.Context(), 1)
		after := r.do(t.Context(), 2)
		answers <- errBad
		r.ended(before, errBad)
		r.waits(after)
		answers <- dlock.ErrLost // before anything was done: once more
		r.waits(after)
		time.Sleep(time.Minute)
		answers <- nil
		r.ended(after, nil)
		if err := r.group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
