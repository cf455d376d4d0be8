package cohort_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/shop/internal/cohort"
)

// A caller whose time is over leaves its batch, which is stopped when all callers have left.
func TestABatchOutlivesThoseWhoGiveUp(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		impatient, waiting := context.WithCancelCause(r.Context())
		later, giveUpLater := context.WithCancelCause(r.Context())
		one, two, three, four := r.do(ctx, 1), r.do(ctx, 2), make(chan error, 1), make(chan error, 1)
		go func() { three <- r.group.Do(ctx, impatient, "a", 3) }()
		synctest.Wait()
		go func() { four <- r.group.Do(later, later, "a", 4) }()
		synctest.Wait()
		release()
		c := r.commit(1, 2, 3, 4)
		waiting(errBad) // which bounds the time in the line, and not that in a batch
		time.Sleep(time.Minute)
		r.waits(three)
		gone := errors.New("gone")
		giveUp(gone)
		time.Sleep(time.Second)
		for _, done := range []<-chan error{one, two, three} {
			err := <-done
			if !errors.Is(err, gone) || !errors.Is(err, cohort.ErrLeft) {
				r.Errorf("the answer is %v, want that it is unknown", err)
			}
		}
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		r.waits(four)
		giveUpLater(gone)
		time.Sleep(time.Second)
		r.ended(four, cohort.ErrLeft)
		if !errors.Is(context.Cause(c.ctx), gone) {
			r.Errorf("the work goes on for nobody: %v", context.Cause(c.ctx))
		}
		c.answer <- errors.New("stopped")
	})
}

// A batch that ends with the time of its last caller still says what became of its items.
func TestAStoppedBatchStillAnswers(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		ctx, giveUp := context.WithCancelCause(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		gone, stopped := errors.New("gone"), errors.New("stopped")
		giveUp(gone)
		<-c.ctx.Done()
		c.answer <- stopped
		err := <-done
		if !errors.Is(err, gone) || !errors.Is(err, stopped) || errors.Is(err, cohort.ErrLeft) {
			r.Errorf("the answer is %v", err)
		}
	})
}

// A caller whose time is over does not wait for the end of a long batch that others want. Its item stays in the batch.
func TestALongBatchKeepsNoCaller(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		release := r.hold()
		ctx, giveUp := context.WithCancelCause(r.Context())
		one, two := r.do(ctx, 1), r.do(r.Context(), 2)
		release()
		c := r.commit(1, 2)
		gone, began := errors.New("gone"), time.Now()
		giveUp(gone)
		err := <-one
		if d := time.Since(began); !errors.Is(err, cohort.ErrLeft) || !errors.Is(err, gone) || d > time.Second {
			r.Errorf("Do = %v after %v, want that the batch goes on", err, d)
		}
		r.waits(two)
		if c.ctx.Err() != nil {
			r.Error("the work is stopped though somebody wants it")
		}
		c.answer <- nil
		r.ended(two, nil)
	})
}

// Work that was done in time is done, though its caller has gone.
func TestSuccessIsReportedToThoseWhoGaveUp(t *testing.T) {
	bubble(t, config{}, func(r *rig) {
		ctx, giveUp := context.WithCancel(r.Context())
		done := r.do(ctx, 1)
		c := r.commit(1)
		giveUp()
		c.answer <- nil
		r.ended(done, nil)
	})
}
