package cohort_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"example.com/shop/internal/cohort"
	"example.com/shop/internal/dlock"
)

// held reports whether anybody has the lease.
func (r *rig) held() bool {
	r.Helper()
	synctest.Wait()
	s, err := r.lock.Inspect(r.Context(), "a")
	if err != nil {
		r.Fatal(err)
	}
	return s.Held
}

// A batch that is handed over gives its lease back, is committed to its end whoever has the next one,
// and its callers wait for that, as does the next batch here.
func TestHandOver(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		first := r.do(r.Context(), 1)
		one := r.commit(1)
		if !r.held() {
			t.Fatal("there is no lease")
		}
		cohort.HandOver(one.ctx)
		if r.held() {
			t.Error("the lease is kept")
		}
		release := r.hold()
		if one.ctx.Err() != nil {
			t.Error("the work is told to stop:", context.Cause(one.ctx))
		}
		r.waits(first)
		second := r.do(r.Context(), 2)
		release()
		r.nobody()
		one.answer <- nil
		r.ended(first, nil)
		two := r.commit(2)
		if two.fence.Token <= one.fence.Token {
			t.Errorf("fence %v after %v", two.fence, one.fence)
		}
		two.answer <- nil
		r.ended(second, nil)
	})
}

// While somebody waits here the lease is kept for him, as long as it may be.
func TestHandOverIsOfTheLastBatch(t *testing.T) {
	bubble(t, cohort.Config[int]{MaxBatches: 2}, func(r *rig) {
		r.all(1)
		one := r.commit(1)
		r.all(2)
		cohort.HandOver(one.ctx)
		if !r.held() {
			t.Error("the lease was given back before the last batch")
		}
		one.answer <- nil
		two := r.commit(2)
		if one.fence != two.fence {
			t.Errorf("fences %v and %v, want one lease", one.fence, two.fence)
		}
		r.all(3)
		cohort.HandOver(two.ctx)
		if r.held() {
			t.Error("the lease is kept beyond its batches")
		}
		two.answer <- nil
		r.commit(3).answer <- nil
	})
}

// What becomes of a batch after it was handed over is treated as before: it is committed again under
// another lease, and that one is kept until the end.
func TestABatchIsHandedOverOnce(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		done := r.do(r.Context(), 1)
		one := r.commit(1)
		cohort.HandOver(one.ctx)
		cohort.HandOver(one.ctx)
		one.answer <- dlock.ErrFenced
		two := r.commit(1)
		if two.fence.Token <= one.fence.Token {
			t.Errorf("fence %v after %v", two.fence, one.fence)
		}
		cohort.HandOver(two.ctx)
		if !r.held() {
			t.Error("the second attempt was handed over")
		}
		two.answer <- nil
		r.ended(done, nil)
	})
}

// One who is to blame is found after the batch was handed over, too.
func TestABatchThatWasHandedOverIsSplit(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		release := r.hold()
		done := r.all(1, 2)
		release()
		both := r.commit(1, 2)
		cohort.HandOver(both.ctx)
		both.answer <- errBad
		for item, answer := range []error{errBad, nil} {
			half := r.commit(item + 1)
			cohort.HandOver(half.ctx)
			half.answer <- answer
		}
		r.ended(done[1], errBad)
		r.ended(done[2], nil)
	})
}

// The half of a batch is not handed over: the other half is still to come.
func TestHalfABatchIsNotHandedOver(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		release := r.hold()
		r.all(1, 2)
		release()
		r.commit(1, 2).answer <- errBad
		one := r.commit(1)
		cohort.HandOver(one.ctx)
		if !r.held() {
			t.Error("the lease was given back between the halves")
		}
		one.answer <- nil
		r.commit(2).answer <- nil
	})
}

// A lease that is lost before the batch is handed over ends the work; there is nothing to hand over.
func TestHandOverOfALostLease(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		done := r.do(r.Context(), 1)
		one := r.commit(1)
		if err := r.lock.ForceRelease(r.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		<-one.ctx.Done()
		cohort.HandOver(one.ctx)
		if !errors.Is(context.Cause(one.ctx), dlock.ErrLost) {
			t.Error(context.Cause(one.ctx))
		}
		one.answer <- errBad
		r.commit(1).answer <- nil
		r.ended(done, nil)
	})
}

// When all who wait for a batch have gone, its work is told so after it was handed over, too.
func TestABatchThatWasHandedOverIsGivenUp(t *testing.T) {
	bubble(t, cohort.Config[int]{}, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, 1)
		one := r.commit(1)
		cohort.HandOver(one.ctx)
		giveUp(errBad)
		<-one.ctx.Done()
		one.answer <- context.Cause(one.ctx)
		r.ended(done, errBad)
	})
}

// Nothing happens elsewhere.
func TestHandOverOfNothing(t *testing.T) {
	t.Parallel()
	cohort.HandOver(t.Context())
}
